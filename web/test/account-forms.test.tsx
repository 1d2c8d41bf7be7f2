import { readFile } from "node:fs/promises";
import type { ApiKey } from "@devmesh/contracts/model/api-key";
import type { ListedCustomer } from "@devmesh/contracts/model/customer";
import type { Session as SessionOfBrowser } from "@devmesh/contracts/model/session";
import { beforeEach, describe, expect, jest, test } from "@jest/globals";
import { MantineProvider } from "@mantine/core";
import { QueryClientProvider } from "@tanstack/react-query";
import { render, screen, waitFor, within } from "@testing-library/react";
import { userEvent } from "@testing-library/user-event";
import { createQueryClient } from "../src/app/app.tsx";
import { SessionProvider, useSession } from "../src/app/session.tsx";
import { SignIn } from "../src/app/sign-in.tsx";
import { CustomersTab } from "../src/features/customers/customers-tab.tsx";
import { InviteCustomer } from "../src/features/customers/invite-customer.tsx";
import { RecordDialog } from "../src/features/data/record-dialog.tsx";
import { CreateKey } from "../src/features/keys/create-key.tsx";
import { KeysTab } from "../src/features/keys/keys-tab.tsx";
import { problem, showPage } from "./show.tsx";

const at = "2026-01-31T12:00:00.000Z";
const keyOf = (id: string, changes: Partial<ApiKey> = {}): ApiKey => ({
  id,
  key: `mk_${id}`,
  access: "full",
  device_id: null,
  name: id,
  created_at: at,
  last_used: null,
  expires_at: null,
  ...changes,
});
const sessionOf = (id: string, changes: Partial<SessionOfBrowser> = {}): SessionOfBrowser => ({
  id,
  master_key_id: "one",
  name: null,
  created_at: at,
  last_used: null,
  expires_at: at,
  ...changes,
});
const customerOf = (id: string): ListedCustomer => ({
  id,
  email: `${id}@example.com`,
  meta: {},
  created_at: at,
  updated_at: at,
  confirmed_at: null,
});

const meshState = (mail_delivery: "smtp" | "files") => ({
  timestamp: at,
  services: [],
  queues: { data: 0, rpc_bridge: 0, jobs: 0, mail: 0, dead_mail: 0 },
  mail_delivery,
});

beforeEach(() => window.history.replaceState(null, "", "/"));

function Session() {
  const { session } = useSession();
  return session === null ? <SignIn /> : <p>signed in with {session.key}</p>;
}

describe("the sign-in", () => {
  const open = async () => {
    render(
      <MantineProvider env="test">
        <QueryClientProvider client={createQueryClient()}>
          <SessionProvider>
            <Session />
          </SessionProvider>
        </QueryClientProvider>
      </MantineProvider>,
    );
    // A new tab first asks the others for a session.
    await screen.findByRole("button", { name: "Sign in" });
    return userEvent.setup();
  };

  test("asks for a key, and says of a key of another kind which it is", async () => {
    const user = await open();
    await user.click(screen.getByRole("button", { name: "Sign in" }));
    await screen.findByText("Enter a key.");
    await user.type(screen.getByLabelText(/Master key/), "pk_abc");
    await user.click(screen.getByRole("button", { name: "Sign in" }));
    await screen.findByText(/This is a device's public key/);
    expect(window.sessionStorage).toHaveLength(0);
  });

  test("says where the key is, with the commands of the documentation", async () => {
    const user = await open();
    await user.click(screen.getByText("Where is the key?"));
    const docs = await Promise.all(
      ["README.md", "docs/operations/install.md"].map((path) =>
        readFile(new URL(`../../${path}`, import.meta.url), "utf8"),
      ),
    );
    const commands = ["Started with npm start", "One container", "Docker compose", "Kubernetes"].map(
      (name) => screen.getByRole("region", { name }).textContent ?? "",
    );
    expect(commands.filter((command) => !docs.join().includes(command))).toEqual([]);
  });

  test("names the file of the key where the server does", async () => {
    const asked = jest
      .spyOn(window, "fetch")
      .mockImplementation(async () => Response.json({ file: "/srv/it's/key" }));
    try {
      await open();
      const command = await screen.findByRole("region", { name: "On this machine", hidden: true });
      expect(command.textContent).toBe("cat '/srv/it'\\''s/key'");
      expect(screen.queryByText("Kubernetes")).toBeNull();
    } finally {
      asked.mockRestore();
    }
  });
});

describe("the creation of a key", () => {
  test("sends what the form has and shows the key", async () => {
    const create = jest.fn((_body: unknown) => [201, keyOf("new", { key: "dk_secret" })] as const);
    const onClose = jest.fn();
    await using page = await showPage(<CreateKey onClose={onClose} />, { "POST /api/v2/keys": create });
    await page.user.click(screen.getByRole("radio", { name: "Device key" }));
    await page.user.type(screen.getByLabelText(/Device ID/), "pump-1");
    await page.user.type(screen.getByLabelText("Name"), "Night shift");
    await page.user.click(screen.getByRole("button", { name: "Create" }));
    await screen.findByText("dk_secret");
    expect(create).toHaveBeenCalledWith({ access: "device", device_id: "pump-1", name: "Night shift" });
    await page.user.click(screen.getByRole("button", { name: "Done" }));
    expect(onClose).toHaveBeenCalled();
  });

  test("shows why it failed, with the id of the request", async () => {
    await using page = await showPage(<CreateKey onClose={() => {}} />, {
      "POST /api/v2/keys": () => [404, problem("device_not_found", 404, "There is no such device.")],
    });
    await page.user.click(screen.getByRole("button", { name: "Create" }));
    const alert = await screen.findByRole("alert");
    expect(alert.textContent).toContain("There is no such device.");
    expect(alert.textContent).toContain("Request r-1");
  });
});

describe("the list of keys", () => {
  test("deletes a key after a confirmation and reads the list again", async () => {
    const keys = [keyOf("one"), keyOf("two")];
    await using page = await showPage(<KeysTab />, {
      "GET /api/v2/keys": () => [200, keys],
      "DELETE /api/v2/keys/two": () => {
        keys.pop();
        return [204];
      },
    });
    const keyRequests = () => page.requests.filter((request) => request.includes("/keys"));
    await page.user.click(await screen.findByRole("button", { name: "Delete the key two" }));
    const dialog = await screen.findByRole("dialog", { name: "Delete the key two?" });
    await page.user.click(within(dialog).getByRole("button", { name: "Cancel" }));
    expect(keyRequests()).toEqual(["GET /api/v2/keys"]);
    await page.user.click(screen.getByRole("button", { name: "Delete the key two" }));
    await page.user.click(within(await screen.findByRole("dialog")).getByRole("button", { name: "Delete" }));
    await waitFor(() => expect(screen.queryByRole("button", { name: "Delete the key two" })).toBeNull());
    expect(keyRequests()).toEqual(["GET /api/v2/keys", "DELETE /api/v2/keys/two", "GET /api/v2/keys"]);
  });

  test("says of the last master key why it stays, before it is tried", async () => {
    const keys = [keyOf("one"), keyOf("old", { expires_at: at })];
    await using page = await showPage(<KeysTab />, {
      "GET /api/v2/keys": () => [200, keys],
    });
    const last = await screen.findByRole("button", { name: "Delete the key one" });
    expect(last.getAttribute("aria-disabled")).toBe("true");
    await page.user.hover(last);
    await screen.findByText("The last master key cannot be deleted: create another one first");
    await page.user.click(last);
    expect(screen.queryByRole("dialog")).toBeNull();
  });

  test("says why a master key stays of which the others went meanwhile", async () => {
    await using page = await showPage(<KeysTab />, {
      "GET /api/v2/keys": () => [200, [keyOf("one"), keyOf("two")]],
      "DELETE /api/v2/keys/one": () => [409, problem("last_master_key", 409)],
    });
    await page.user.click(await screen.findByRole("button", { name: "Delete the key one" }));
    await page.user.click(within(await screen.findByRole("dialog")).getByRole("button", { name: "Delete" }));
    await screen.findByText(/It is the last master key/);
  });

  test("names an unnamed key by what the list shows of it", async () => {
    const key = "mk_abcdefghijklmnopqrstuvwxyz";
    await using page = await showPage(<KeysTab />, {
      "GET /api/v2/keys": () => [
        200,
        [keyOf("id-1", { name: null, key }), keyOf("id-2", { name: null, key: null })],
      ],
    });
    await page.user.click(await screen.findByRole("button", { name: "Delete the key mk_ab…wxyz" }));
    await screen.findByRole("dialog", { name: "Delete the key mk_ab…wxyz?" });
    screen.getByText("mk_ab…wxyz");
    screen.getByRole("button", { name: "Delete the key id-2", hidden: true });
    screen.getByText("id-2");
  });

  test("has no secrets in a session until the user wants them", async () => {
    let reads = 0;
    await using page = await showPage(<KeysTab />, {
      "GET /api/v2/keys": () => [
        200,
        [keyOf("one", { key: null }), keyOf("two", { key: reads++ === 0 ? null : "mk_two" })],
      ],
      "GET /api/v2/sessions": () => [200, [sessionOf("own"), sessionOf("other", { name: "Edge" })]],
      "DELETE /api/v2/sessions/other": () => [204],
    });
    await waitFor(() => expect(screen.getAllByText("hidden")).toHaveLength(2));
    await page.user.click(screen.getByRole("button", { name: "Show the keys" }));
    await screen.findByRole("button", { name: "Copy the key two" });
    screen.getByText("was shown at its creation");
    expect(screen.queryByRole("button", { name: "Show the keys" })).toBeNull();

    const sessions = await screen.findByRole("table", { name: "Sessions" });
    within(sessions).getByText("this browser");
    await page.user.click(screen.getByRole("button", { name: "End the session Edge" }));
    await page.user.click(within(await screen.findByRole("dialog")).getByRole("button", { name: "End" }));
    await waitFor(() => expect(page.requests).toContain("DELETE /api/v2/sessions/other"));
  });

  test("can be read again where that failed", async () => {
    let reads = 0;
    await using page = await showPage(<KeysTab />, {
      "GET /api/v2/sessions": () => [200, []],
      "GET /api/v2/keys": () => {
        reads += 1;
        return reads === 1 ? [403, problem("forbidden", 403)] : [200, [keyOf("one")]];
      },
    });
    await page.user.click(await screen.findByRole("button", { name: "Try again" }));
    await screen.findByRole("button", { name: "Delete the key one" });
  });
});

describe("customers", () => {
  test("are invited by a valid address", async () => {
    await using page = await showPage(<InviteCustomer onClose={() => {}} />, {
      "GET /newcustomer": () => [200, {}],
      "GET /api/v2/mesh": () => [200, meshState("smtp")],
    });
    await page.user.type(screen.getByLabelText(/E-mail/), "nobody");
    await page.user.click(screen.getByRole("button", { name: "Invite" }));
    await screen.findByText("This is no e-mail address.");
    expect(page.requests).toEqual(["GET /api/v2/mesh"]);
    await page.user.type(screen.getByLabelText(/E-mail/), "@example.com");
    await page.user.click(screen.getByRole("button", { name: "Invite" }));
    await screen.findByText(/An invitation to nobody@example.com is on its way/);
    expect(page.requests.slice(1)).toEqual(["GET /newcustomer?email=nobody%40example.com"]);
  });

  test("have their invitation in a file, which is named, where no mail server is set", async () => {
    await using page = await showPage(<InviteCustomer onClose={() => {}} />, {
      "GET /newcustomer": () => [200, {}],
      "GET /api/v2/mesh": () => [200, meshState("files")],
    });
    await page.user.type(screen.getByLabelText(/E-mail/), "ann@example.com");
    await page.user.click(screen.getByRole("button", { name: "Invite" }));
    await screen.findByText(/The invitation to ann@example.com is written to a file/);
    screen.getByText(".data/outbox");
  });

  test("are shown in steps, or those that match a filter, which goes into the address", async () => {
    const customers = Array.from({ length: 101 }, (_, nth) => customerOf(`c-${nth}`));
    await using page = await showPage(<CustomersTab />, { "GET /api/v2/customers": () => [200, customers] });
    await screen.findByText("The first 100 of 101 customers");
    await page.user.click(screen.getByText("Show more"));
    await screen.findByText("c-100@example.com");
    expect(screen.queryByText(/The first/)).toBeNull();
    await page.user.type(screen.getByLabelText("Filter customers"), "C-10");
    await screen.findByText("2 customers");
    expect(window.location.search).toBe("?filter=C-10");
    await page.user.type(screen.getByLabelText("Filter customers"), "x");
    await screen.findByText("No customer matches.");
  });

  test("can be invited where there are none, and are removed after a confirmation", async () => {
    let customers = [customerOf("ann")];
    await using page = await showPage(<CustomersTab />, {
      "GET /api/v2/customers": () => [200, customers],
      "DELETE /api/v2/customers/ann": () => {
        customers = [];
        return [204];
      },
    });
    await page.user.click(await screen.findByRole("button", { name: "Remove ann@example.com" }));
    await page.user.click(within(await screen.findByRole("dialog")).getByRole("button", { name: "Remove" }));
    await screen.findByText(/There are no customers yet/);
    await page.user.click(screen.getByRole("button", { name: "Invite customer" }));
    await screen.findByRole("dialog", { name: "Invite a customer" });
  });
});

test("the dialog of a record shows its payload, indented", async () => {
  const record = { id: 7, timestamp: at, device_id: "pump", topic: "db/pump/t", message: '{"a":1}' };
  await using _page = await showPage(<RecordDialog record={record} onClose={() => {}} />, {});
  const dialog = await screen.findByRole("dialog", { name: "Record 7" });
  expect(within(dialog).getByRole("region", { name: "Payload" }).textContent).toBe('{\n  "a": 1\n}');
});
