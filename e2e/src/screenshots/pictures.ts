import { setTimeout as sleep } from "node:timers/promises";
import type { BrowserContextOptions } from "playwright-core";
import type { Visit } from "../browser/visit.ts";
import type { LivedInMesh } from "./lived-in-mesh.ts";

/** A picture of the documentation. */
export interface Picture {
  /** Of the file, without `.png`. */
  readonly name: string;
  readonly path: string;
  readonly options?: BrowserContextOptions;
  /** Nobody is signed in. */
  readonly signedOut?: boolean;
  /** What is done before the picture. */
  readonly prepare?: (visit: Visit) => Promise<void>;
}

const dark = { colorScheme: "dark" } as const;
const phone = {
  viewport: { width: 390, height: 844 },
  isMobile: true,
  hasTouch: true,
  deviceScaleFactor: 2,
} as const;
const tall = { viewport: { width: 1440, height: 1000 } } as const;

/** Every picture, of the mesh as it is now. */
export function pictures(lived: LivedInMesh): readonly Picture[] {
  const { mesh, pump, differing, job, update, webhook, board } = lived;
  return [
    // Before it ends.
    { name: "job-update", path: `/jobs/${update}` },
    { name: "job-update-dark", path: `/jobs/${update}`, options: dark },
    { name: "job-update-phone", path: `/jobs/${update}`, options: phone },
    { name: "home", path: "/home", options: tall },
    { name: "home-dark", path: "/home", options: { ...tall, ...dark } },
    { name: "home-phone", path: "/home", options: phone },
    { name: "devices", path: "/devices" },
    { name: "devices-dark", path: "/devices", options: dark },
    { name: "devices-phone", path: "/devices", options: phone },
    { name: "device", path: `/devices/${pump}`, options: tall },
    { name: "device-dark", path: `/devices/${pump}`, options: { ...tall, ...dark } },
    { name: "device-phone", path: `/devices/${pump}`, options: phone },
    { name: "device-data", path: `/devices/${pump}/data?range=15m` },
    { name: "device-data-phone", path: `/devices/${pump}/data?range=15m`, options: phone },
    { name: "device-shadow", path: `/devices/${differing}/shadow` },
    { name: "device-rpc", path: `/devices/${pump}/rpc`, prepare: callFunctions },
    { name: "device-work", path: `/devices/${pump}/work` },
    { name: "device-log", path: `/devices/${pump}/log` },
    { name: "device-access", path: `/devices/${pump}/access` },
    { name: "device-credentials", path: `/devices/${pump}/credentials` },
    { name: "device-creation", path: "/devices", prepare: (visit) => createDevice(visit, mesh.masterKey) },
    { name: "data", path: "/data?filter=pressure" },
    { name: "boards", path: "/boards" },
    { name: "board", path: `/boards/${board}`, options: tall },
    { name: "board-dark", path: `/boards/${board}?full=1`, options: dark },
    { name: "board-phone", path: `/boards/${board}`, options: phone },
    { name: "alerts", path: "/alerts" },
    { name: "alerts-dark", path: "/alerts", options: dark },
    { name: "alerts-phone", path: "/alerts", options: phone },
    { name: "alert", path: "/alerts?state=all&severity=critical", options: tall, prepare: openAlert },
    { name: "alert-rules", path: "/alerts/rules" },
    { name: "alert-rule-new", path: "/alerts/rules/new", options: tall, prepare: tryRule },
    {
      name: "alert-rule-new-dark",
      path: "/alerts/rules/new",
      options: { ...tall, ...dark },
      prepare: tryRule,
    },
    { name: "alert-channels", path: "/alerts/channels" },
    { name: "alert-silences", path: "/alerts/silences" },
    { name: "webhooks", path: "/webhooks" },
    { name: "webhook", path: `/webhooks/${webhook}` },
    { name: "jobs", path: "/jobs" },
    { name: "job", path: `/jobs/${job}` },
    { name: "job-new", path: "/jobs/new", prepare: tryJob },
    { name: "job-new-update", path: "/jobs/new?kind=firmware", options: tall, prepare: tryUpdate },
    {
      name: "job-new-update-dark",
      path: "/jobs/new?kind=firmware",
      options: { ...tall, ...dark },
      prepare: tryUpdate,
    },
    { name: "job-new-update-phone", path: "/jobs/new?kind=firmware", options: phone, prepare: tryUpdate },
    { name: "firmware", path: "/firmware" },
    { name: "firmware-dark", path: "/firmware", options: dark },
    { name: "firmware-phone", path: "/firmware", options: phone },
    { name: "keys", path: "/keys" },
    { name: "customers", path: "/customers" },
    { name: "services", path: "/services", prepare: () => sleep(4_000) },
    { name: "services-dark", path: "/services", options: dark, prepare: () => sleep(4_000) },
    { name: "sign-in", path: "/", signedOut: true },
    { name: "api", path: "/docs#?route=post-/api/v2/devices/-id-/rpc/-func-" },
    { name: "api-dark", path: "/docs", options: dark },
  ];
}

async function callFunctions({ page }: Visit): Promise<void> {
  for (const [func, params] of [
    ["Sys.GetInfo", ""],
    ["Pump.Start", '{"seconds": 30}'],
  ] as const) {
    await page.getByRole("combobox", { name: "Function" }).fill(func);
    await page.getByLabel("Parameters").fill(params);
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "Call", exact: true }).click();
    await page.getByRole("region", { name: `Answer of ${func}` }).waitFor();
  }
}

async function openAlert({ page }: Visit): Promise<void> {
  await page
    .getByRole("table", { name: "Alerts" })
    .getByRole("link", { name: "Pump runs hot" })
    .first()
    .click();
  await page.locator("canvas").waitFor();
}

async function tryRule({ page }: Visit): Promise<void> {
  const fill = (name: string, text: string) => page.getByRole("textbox", { name, exact: true }).fill(text);
  await fill("Topic", "pump");
  await fill("Pointer into the message", "/motor");
  await fill("Limit", "30");
  await fill("It ends only beyond", "27");
  await fill("Devices", "label:pump");
  await page.getByRole("checkbox", { name: "On call" }).check();
  await page.getByRole("button", { name: "Try" }).click();
  await page.locator("canvas").waitFor();
}

async function tryJob({ page }: Visit): Promise<void> {
  await page.getByRole("textbox", { name: "Function" }).fill("Pump.Start");
  await page.getByRole("textbox", { name: "Parameters" }).fill('{"seconds": 30}');
  await page.getByRole("textbox", { name: "Condition" }).fill("label:pump");
  await page.getByRole("textbox", { name: "Stages, in percent" }).fill("10, 50");
  await page.getByRole("button", { name: "Dry run" }).click();
}

async function tryUpdate({ page }: Visit): Promise<void> {
  const firmware = page.getByLabel("Firmware", { exact: true });
  await firmware.selectOption(await firmware.locator("option", { hasText: "lamp" }).getAttribute("value"));
  await page.getByRole("textbox", { name: "Condition" }).fill("label:lamp");
  await page.getByRole("textbox", { name: "Stages, in percent" }).fill("10, 50");
  await page.getByRole("button", { name: "Dry run" }).click();
}

async function createDevice({ page, enterMasterKey }: Visit, masterKey: string): Promise<void> {
  await page.getByRole("button", { name: "Add device" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("ID").fill("attic-fan");
  await dialog.getByLabel("Name").fill("Fan, attic");
  await dialog.getByRole("button", { name: "Create" }).click();
  await enterMasterKey(masterKey);
  await page.getByText("attic-fan is created").first().waitFor();
}
