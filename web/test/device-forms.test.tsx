import type { Device, DevicePatch } from "@devmesh/contracts/model/device";
import { beforeEach, describe, expect, jest, test } from "@jest/globals";
import { screen, waitFor, within } from "@testing-library/react";
import { WorkPanel } from "../src/components/work-panel.tsx";
import { DeleteDevices } from "../src/features/devices/bulk/delete-devices.tsx";
import { WorkDialog } from "../src/features/devices/bulk/work-dialog.tsx";
import { CreateDevice } from "../src/features/devices/list/create-device.tsx";
import { AccessSection } from "../src/features/devices/page/access-section.tsx";
import { CredentialsSection } from "../src/features/devices/page/credentials-section.tsx";
import { DeviceLabels } from "../src/features/devices/page/device-labels.tsx";
import { DeviceNameEditor } from "../src/features/devices/page/device-name.tsx";
import { RpcSection } from "../src/features/devices/page/rpc-section.tsx";
import { ShadowSection } from "../src/features/devices/page/shadow-section.tsx";
import { deviceOf } from "./devices.ts";
import { problem, showPage } from "./show.tsx";

const ids = ["pump", "lamp"];
const mqtt = { "GET /api/v2/mqtt": () => [200, { host: null, port: 1883, tls: false }] as const };

function withDesired(desired: Device["shadow"]["state"]["desired"]): Device {
  const device = deviceOf("pump");
  return { ...device, shadow: { ...device.shadow, state: { ...device.shadow.state, desired } } };
}

/** The text in the editor, without the blanks that align it with what is reported. */
function desiredText(): string {
  return (screen.getByLabelText("Desired") as HTMLTextAreaElement).value.replaceAll(/\s/g, "");
}

// Drafts outlast their forms.
beforeEach(() => sessionStorage.clear());

/** Types a text in which `{` and `[` mean themselves. */
const literally = (text: string) => text.replace(/[{[]/g, "$&$&");

describe("the creation of a device", () => {
  test("refuses a wrong id, sends what the form has and shows how to connect", async () => {
    const create = jest.fn(
      (_body: unknown) => [201, { ...deviceOf("pump"), token: "dt_1", public_key: "pk_1" }] as const,
    );
    await using page = await showPage(<CreateDevice onClose={() => {}} />, {
      "POST /api/v2/devices": create,
      ...mqtt,
    });
    await page.user.type(screen.getByLabelText("ID"), "pu/mp");
    await page.user.click(screen.getByRole("button", { name: "Create" }));
    expect(screen.getByLabelText("ID").getAttribute("aria-invalid")).toBe("true");
    expect(create).not.toHaveBeenCalled();
    await page.user.clear(screen.getByLabelText("ID"));
    await page.user.type(screen.getByLabelText("ID"), " pump");
    await page.user.type(screen.getByRole("combobox", { name: "Labels" }), "hall{Enter}");
    await page.user.click(screen.getByRole("button", { name: "Create" }));
    await screen.findByText("pump is created.");
    expect(create).toHaveBeenCalledWith({ id: "pump", shadow: { tags: { labels: ["hall"] } } });
    await screen.findByText(/mosquitto_sub .* -u pump -P dt_1/);
  });
});

describe("work on several devices", () => {
  test("deletes several only after their number is typed, and says so when it starts", async () => {
    const onStarted = jest.fn();
    const close = () => page.show(<WorkPanel />);
    await using page = await showPage(<DeleteDevices ids={ids} onClose={close} onStarted={onStarted} />, {
      "DELETE /api/v2/devices/pump": () => [204],
      "DELETE /api/v2/devices/lamp": () => [204],
    });
    const remove = screen.getByRole("button", { name: "Delete" });
    await page.user.type(screen.getByLabelText("Number of devices to delete"), "1");
    expect(remove).toHaveProperty("disabled", true);
    await page.user.clear(screen.getByLabelText("Number of devices to delete"));
    await page.user.type(screen.getByLabelText("Number of devices to delete"), "2");
    expect(page.requests).toEqual([]);
    await page.user.click(remove);
    await screen.findByText("2 of 2 deleted");
    expect(onStarted).toHaveBeenCalled();
  });

  test("is repeated for those that failed, and selects them in the list", async () => {
    const tried: string[] = [];
    const act = async (id: string) => {
      tried.push(id);
      if (id === "lamp") throw new Error("it is dark");
    };
    const job = { ids, done: "lit", action: "Go", ready: true, act, children: null, onClose: () => {} };
    await using page = await showPage(<WorkDialog {...job} title="Light" name="Light 2 devices" />, {});
    await page.user.click(screen.getByRole("button", { name: "Go" }));
    page.show(<WorkPanel />);
    await screen.findByText("1 of 2 lit, 1 failed");
    await page.user.click(screen.getByRole("button", { name: "Retry the failed" }));
    await screen.findByText("0 of 1 lit, 1 failed");
    expect(tried).toEqual(["pump", "lamp", "lamp"]);
    await page.user.click(screen.getByRole("button", { name: "Select the failed" }));
    await waitFor(() => expect(window.location.pathname).toBe("/devices"));
  });

  test("goes on while other views are shown, one job after the other, until it is cancelled", async () => {
    const answered = Promise.withResolvers<void>();
    const act = () => answered.promise;
    const job = { ids, done: "done", action: "Go", ready: true, act, children: null, onClose: () => {} };
    await using page = await showPage(<WorkDialog {...job} title="First" name="First job" />, {});
    await page.user.click(screen.getByRole("button", { name: "Go" }));
    page.show(<WorkDialog {...job} title="Second" name="Second job" />);
    await page.user.click(await screen.findByRole("button", { name: "Go" }));
    page.show(
      <>
        <p>another view</p>
        <WorkPanel />
      </>,
    );
    await screen.findByText("another view");
    await screen.findByText("0 of 2 done");
    screen.getByText("Waits for the work before it");
    await page.user.click(screen.getAllByRole("button", { name: "Cancel" })[1] as Element);
    answered.resolve();
    await screen.findByText("2 of 2 done");
    await screen.findByText("0 of 2 done. Cancelled; 2 were left as they are");
  });
});

describe("the name and the labels of a device", () => {
  test("are edited in their place: Enter saves the name, Escape returns", async () => {
    const patch = jest.fn((_body: unknown) => [200, deviceOf("pump", { name: "Cellar" })] as const);
    const close = jest.fn();
    await using page = await showPage(<DeviceNameEditor device={deviceOf("pump")} onClose={close} />, {
      "POST /api/v2/devices/pump": patch,
    });
    await page.user.type(screen.getByLabelText("Name"), "Cel{Escape}");
    expect(close).toHaveBeenCalledTimes(1);
    await page.user.type(screen.getByLabelText("Name"), "lar{Enter}");
    await waitFor(() => expect(patch).toHaveBeenCalledWith({ name: "Cellar" }));
    await waitFor(() => expect(close).toHaveBeenCalledTimes(2));
  });

  test("are added and removed one by one, so that those of others stay", async () => {
    const tagged = (labels: string[]) =>
      deviceOf("pump", { shadow: { ...deviceOf("pump").shadow, tags: { labels } } });
    const patch = jest.fn((_body: unknown) => [200, tagged([])] as const);
    await using page = await showPage(<DeviceLabels device={tagged(["a", "b"])} />, {
      "POST /api/v2/devices/pump": patch,
    });
    await page.user.click(screen.getByRole("button", { name: "Add a label" }));
    await page.user.type(await screen.findByLabelText("New label"), "c{Enter}");
    await waitFor(() => expect(patch).toHaveBeenCalledWith({ labels: { add: ["c"] } }));
    const remove = screen.getByRole("button", { name: "Remove the label b" });
    await waitFor(() => expect(remove).toHaveProperty("disabled", false));
    await page.user.click(remove);
    await waitFor(() => expect(patch).toHaveBeenLastCalledWith({ labels: { remove: ["b"] } }));
  });
});

describe("the shadow of a device", () => {
  const before = withDesired({ on: false });

  test("is saved as a patch of what was edited, and not while it is no JSON", async () => {
    const patches: DevicePatch[] = [];
    await using page = await showPage(<ShadowSection device={before} />, {
      "GET /api/v2/devices/pump": () => [200, before, { ETag: '"1"' }],
      "POST /api/v2/devices/pump": (body: DevicePatch) => {
        patches.push(body);
        return [200, withDesired({ on: true })];
      },
    });
    const desired = screen.getByLabelText("Desired");
    const save = screen.getByRole("button", { name: "Save" });
    expect(save).toHaveProperty("disabled", true);
    await page.user.clear(desired);
    await page.user.type(desired, literally('{"on": tru'));
    await screen.findByText(/a value is expected/);
    expect(save).toHaveProperty("disabled", true);
    await page.user.type(desired, "e}");
    await page.user.click(save);
    await waitFor(() => expect(patches).toEqual([{ shadow: { state: { desired: { on: true } } } }]));
  });

  test("has a delta with or without metadata, which is saved at once", async () => {
    const patches: DevicePatch[] = [];
    await using page = await showPage(<ShadowSection device={before} />, {
      "POST /api/v2/devices/pump": (body: DevicePatch) => {
        patches.push(body);
        return [200, { ...before, ...body }];
      },
    });
    const metadata = screen.getByRole("switch", { name: "Metadata in the delta" });
    expect(metadata).toHaveProperty("checked", true);
    await page.user.click(metadata);
    await waitFor(() => expect(patches).toEqual([{ delta_metadata: false }]));
    page.show(<ShadowSection device={{ ...before, delta_metadata: false }} />);
    await waitFor(() => expect(metadata).toHaveProperty("checked", false));
  });

  test("without edits follows what others save; with edits shows theirs beside it", async () => {
    await using page = await showPage(<ShadowSection device={before} />, {});
    const desired = screen.getByLabelText("Desired");
    page.show(<ShadowSection device={withDesired({ on: 1 })} />);
    await waitFor(() => expect(desiredText()).toBe('{"on":1}'));
    await page.user.clear(desired);
    await page.user.type(desired, literally('{"on":2}'));
    page.show(<ShadowSection device={withDesired({ on: 3 })} />);
    const conflict = await screen.findByRole("alert", { name: /Someone else changed the desired state/ });
    expect(
      within(conflict)
        .getAllByRole("cell")
        .map(({ textContent }) => textContent),
    ).toEqual(["/on (both changed it)", "1", "3", "2"]);
    expect(screen.getByRole("button", { name: "Save" })).toHaveProperty("disabled", true);
    await page.user.click(screen.getByRole("button", { name: "Discard mine, take theirs" }));
    await waitFor(() => expect(desiredText()).toBe('{"on":3}'));
    expect(screen.queryByRole("alert")).toBeNull();
  });

  test("overwrites what others saved if that is what the user decides", async () => {
    const theirs = withDesired({ on: 3 });
    const patches: DevicePatch[] = [];
    await using page = await showPage(<ShadowSection device={before} />, {
      "GET /api/v2/devices/pump": () => [200, theirs, { ETag: '"2"' }],
      "POST /api/v2/devices/pump": (body: DevicePatch) => {
        patches.push(body);
        return [200, withDesired({ on: 2 })];
      },
    });
    await page.user.clear(screen.getByLabelText("Desired"));
    await page.user.type(screen.getByLabelText("Desired"), literally('{"on":2}'));
    page.show(<ShadowSection device={theirs} />);
    await page.user.click(await screen.findByRole("button", { name: "Overwrite theirs with mine" }));
    await waitFor(() => expect(patches).toEqual([{ shadow: { state: { desired: { on: 2 } } } }]));
  });
});

describe("what is typed into a device's shadow", () => {
  const before = withDesired({ on: false });

  test("is kept while other pages are shown, until it is saved", async () => {
    const patch = jest.fn((_body: unknown) => [200, withDesired({ on: true })] as const);
    await using page = await showPage(<ShadowSection device={before} />, {
      "GET /api/v2/devices/pump": () => [200, before, { ETag: '"1"' }],
      "POST /api/v2/devices/pump": patch,
    });
    await page.user.clear(screen.getByLabelText("Desired"));
    await page.user.type(screen.getByLabelText("Desired"), literally('{"on": tru'));
    page.show(<p>elsewhere</p>);
    await screen.findByText("elsewhere");
    page.show(<ShadowSection device={deviceOf("lamp")} key="lamp" />);
    expect(desiredText()).toBe("{}");
    page.show(<ShadowSection device={before} key="pump" />);
    expect(screen.getByLabelText("Desired")).toHaveProperty("value", '{"on": tru');
    await screen.findByText(/a value is expected/);
    await page.user.type(screen.getByLabelText("Desired"), "e}");
    await page.user.click(screen.getByRole("button", { name: "Save" }));
    await waitFor(() => expect(patch).toHaveBeenCalledWith({ shadow: { state: { desired: { on: true } } } }));
    await waitFor(() => expect(sessionStorage.length).toBe(0));
  });

  test("is kept beside what others save meanwhile", async () => {
    await using page = await showPage(<ShadowSection device={before} />, {});
    await page.user.clear(screen.getByLabelText("Desired"));
    await page.user.type(screen.getByLabelText("Desired"), literally('{"on": 2}'));
    page.show(<p>elsewhere</p>);
    await screen.findByText("elsewhere");
    page.show(<ShadowSection device={withDesired({ on: 3 })} />);
    await screen.findByRole("alert", { name: /Someone else changed the desired state/ });
    expect(screen.getByLabelText("Desired")).toHaveProperty("value", '{"on": 2}');
  });
});

test("the access of a device is edited, checked and saved whole", async () => {
  const device = deviceOf("pump", { acl: { read: [], write: [], rpc: [], queries: {} } });
  const patch = jest.fn((_body: unknown) => [200, device] as const);
  await using page = await showPage(<AccessSection device={device} />, {
    "GET /api/v2/devices/pump": () => [200, device, { ETag: '"1"' }],
    "POST /api/v2/devices/pump": patch,
  });
  const save = screen.getByRole("button", { name: "Save" });
  await page.user.type(screen.getByRole("combobox", { name: "Reads" }), "state{Enter}");
  await screen.findByText(/^state /);
  expect(save).toHaveProperty("disabled", true);
  await page.user.click(screen.getByRole("button", { name: "Discard" }));
  await page.user.type(screen.getByRole("combobox", { name: "Reads" }), "/state/reported{Enter}");
  await page.user.type(screen.getByRole("combobox", { name: "Calls" }), "Sys.GetInfo{Enter}");
  await page.user.click(save);
  await waitFor(() =>
    expect(patch).toHaveBeenCalledWith({
      acl: { read: ["/state/reported"], write: [], rpc: ["Sys.GetInfo"], queries: {} },
    }),
  );
});

test("calls of a device are kept, newest first, to be used again, and cleared", async () => {
  let calls = 0;
  await using page = await showPage(<RpcSection device={deviceOf("pump", { online: true })} />, {
    "GET /api/v2/devices/pump/rpc/RPC.List": () => [200, ["sum", "RPC.List"]],
    "POST /api/v2/devices/pump/rpc/sum": () => {
      calls += 1;
      return calls === 1 ? [200, 42] : [504, problem("rpc_timeout", 504)];
    },
  });
  await screen.findByText(/has 2 functions/);
  await page.user.type(screen.getByRole("combobox", { name: "Function" }), "sum");
  await page.user.click(screen.getByRole("button", { name: "Call" }));
  expect((await screen.findByRole("region", { name: "Answer of sum" })).textContent).toBe("42");
  await page.user.type(screen.getByLabelText("Parameters"), "7");
  await screen.findByText("Parameters are a JSON object or array.");
  await page.user.click(screen.getByRole("button", { name: "Use again" }));
  expect(screen.getByLabelText("Parameters")).toHaveProperty("value", "");
  await page.user.click(screen.getByRole("button", { name: "Call" }));
  await screen.findByText("The device did not answer in time");
  const kept = screen.getByRole("log", { name: "Calls of this session" });
  expect(kept.textContent).toMatch(/failed.*answered/);
  await page.user.click(screen.getByRole("button", { name: "Clear" }));
  expect(kept.textContent).toBe("None yet.");
});

test("a secret of a device is replaced after a confirmation", async () => {
  let token = "dt_old";
  await using page = await showPage(<CredentialsSection device={deviceOf("pump")} />, {
    "GET /api/v2/devices/pump/credentials": () => [200, { token, public_key: "pk_1" }],
    "POST /api/v2/devices/pump/token": () => {
      token = "dt_new";
      return [200, { token }];
    },
    ...mqtt,
  });
  expect(page.requests.filter((request) => request.includes("credentials"))).toEqual([]);
  await page.user.click(screen.getByRole("button", { name: "Show the credentials" }));
  await screen.findByRole("button", { name: "Show the token" });
  await page.user.click(screen.getByRole("button", { name: "Replace the token" }));
  const dialog = await screen.findByRole("dialog", { name: "Replace the token?" });
  await page.user.click(within(dialog).getByRole("button", { name: "Replace the token" }));
  await waitFor(() => expect(screen.queryByRole("dialog")).toBeNull());
  await page.user.click(screen.getByRole("button", { name: "Show the token" }));
  await screen.findByText("dt_new");
});
