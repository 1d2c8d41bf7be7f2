import { createHash } from "node:crypto";
import type { Firmware } from "@devmesh/contracts/model/firmware";
import { describe, expect, test } from "@jest/globals";
import { screen, within } from "@testing-library/react";
import { remainingMs, remainingText } from "../src/components/progress-text.ts";
import { WorkPanel } from "../src/components/work-panel.tsx";
import { FirmwareTab } from "../src/features/firmware/firmware-tab.tsx";
import { hashFile } from "../src/features/firmware/hash-file.ts";
import { emptyFirmware, nameAndVersion, readFirmware } from "../src/features/firmware/typed-firmware.ts";
import { problem, showPage, type TestRoutes } from "./show.tsx";

const at = "2026-01-31T12:00:00.000Z";
const content = new TextEncoder().encode("an image");
const sha256 = createHash("sha256").update(content).digest("hex");
const firmwareOf = (changes: Partial<Firmware> = {}): Firmware => ({
  id: "one",
  name: "pump",
  version: "1.4.0",
  size: content.length,
  sha256,
  md5: null,
  reported_as: "1.4.0",
  requires: null,
  signature: null,
  note: null,
  ready: true,
  created_at: at,
  created_by: { kind: "master", key_id: "k" },
  ...changes,
});

const routesWith = (files: readonly Firmware[], others: TestRoutes = {}): TestRoutes => ({
  "GET /api/v2/firmware": () => [200, files],
  "GET /api/v2/jobs": () => [200, []],
  "GET /api/v2/device_facets": () => [
    200,
    {
      total: 10,
      facets: {
        version: [
          { value: "1.4.0", count: 7 },
          { value: null, count: 3 },
        ],
      },
      others: { version: 0 },
    },
  ],
  ...others,
});

describe("a file's SHA-256", () => {
  test("is that of node:crypto, over a file of several slices", async () => {
    const bytes = Buffer.from(Uint8Array.from({ length: 2_500_000 }, (_, nth) => nth % 251));
    const read: number[] = [];
    const hash = await hashFile(new Blob([bytes]), new AbortController().signal, (count) => read.push(count));
    expect(hash).toBe(createHash("sha256").update(bytes).digest("hex"));
    expect(read).toEqual([1_048_576, 2_097_152, 2_500_000]);
  });

  test("ends when it is not wanted any more", async () => {
    const ending = new AbortController();
    const hashed = hashFile(new Blob([new Uint8Array(3_000_000)]), ending.signal, () => ending.abort());
    await expect(hashed).rejects.toThrow("aborted");
  });
});

describe("firmware as it is typed", () => {
  const file = { size: content.length, sha256 };

  test.each([
    ["pump-1.4.0.bin", "pump", "1.4.0"],
    ["fridge_controller-v2.5.0-rc.1.zip", "fridge_controller", "2.5.0-rc.1"],
    ["firmware.bin", "firmware", ""],
  ])("gets name and version from %s", (fileName, name, version) => {
    expect(nameAndVersion(fileName)).toEqual({ name, version });
  });

  test("becomes a body without its empty fields", () => {
    const typed = { ...emptyFirmware, name: " pump ", version: "1.4.0", requires: "label:pump-v2" };
    expect(readFirmware(typed, file)).toEqual({
      body: { name: "pump", version: "1.4.0", ...file, requires: { labels: { all: ["pump-v2"] } } },
      faults: {},
    });
  });

  test("names the fields that are wrong", () => {
    const typed = { ...emptyFirmware, name: "pump", requires: "label:", signature: "no base64!" };
    const { body, faults } = readFirmware(typed, file);
    expect(body).toBeNull();
    expect(Object.keys(faults).sort()).toEqual(["requires", "signature", "version"]);
    expect([faults.version, faults.signature]).toEqual(["It is needed.", "must be base64"]);
  });
});

test("when something ends is known from its pace", () => {
  expect(remainingText(remainingMs(100, 0.001))).toBe("");
  expect(remainingText(remainingMs(60_000, 0.1))).toBe("about 9 min left");
  expect(remainingText(remainingMs(60_000, 0.99))).toBe("a few seconds left");
  expect(remainingText(remainingMs(60_000, 1))).toBe("");
});

describe("the firmware", () => {
  test("is shown with the devices that run it, and the versions of the fleet with their files", async () => {
    await using _page = await showPage(<FirmwareTab />, routesWith([firmwareOf()]));
    const files = await screen.findByRole("table", { name: "Firmware" });
    await within(files).findByRole("link", { name: "7" });
    const versions = within(screen.getByRole("table", { name: "Versions that the fleet reports" }));
    expect(versions.getAllByRole("row").map(({ textContent }) => textContent)).toEqual([
      "VersionDevicesShareFile",
      "1.4.0770 %pump",
      "not reported330 %none",
    ]);
  });

  test("is declared with the hash of the file, then uploaded", async () => {
    let declared: unknown;
    let files: readonly Firmware[] = [];
    const routes: TestRoutes = {
      ...routesWith([]),
      "GET /api/v2/firmware": () => [200, files],
      "POST /api/v2/firmware": (body) => {
        declared = body;
        files = [firmwareOf({ ready: false })];
        return [201, files[0]];
      },
    };
    await using page = await showPage(
      <>
        <FirmwareTab />
        <WorkPanel />
      </>,
      routes,
    );
    await page.user.click(await screen.findByRole("button", { name: "Upload firmware" }));
    const dialog = within(await screen.findByRole("dialog", { name: "Upload firmware" }));
    await page.user.click(dialog.getByRole("button", { name: "Upload" }));
    await dialog.findByText("Choose a file.");
    const input = document.querySelector<HTMLInputElement>("input[type=file]");
    await page.user.upload(input as HTMLInputElement, new File([content], "pump-1.4.0.bin"));
    await dialog.findByText(sha256);
    await page.user.click(dialog.getByRole("button", { name: "Upload" }));
    await screen.findByText("Upload pump 1.4.0");
    expect(declared).toEqual({ name: "pump", version: "1.4.0", size: content.length, sha256 });
  });

  test("stays in the list with the reason where it is in use", async () => {
    await using page = await showPage(
      <FirmwareTab />,
      routesWith([firmwareOf()], {
        "DELETE /api/v2/firmware/one": () => [
          409,
          problem("firmware_in_use", 409, "A job that has not ended sends it to devices."),
        ],
      }),
    );
    await page.user.click(await screen.findByRole("button", { name: "Delete pump 1.4.0" }));
    const dialog = within(await screen.findByRole("dialog"));
    await page.user.click(dialog.getByRole("button", { name: "Delete" }));
    await dialog.findByText("A job that has not ended sends it to devices.");
  });

  test("without content is uploaded again, with the file that was declared alone", async () => {
    await using page = await showPage(<FirmwareTab />, routesWith([firmwareOf({ ready: false })]));
    await page.user.click(await screen.findByRole("button", { name: "Upload the file of pump 1.4.0" }));
    const dialog = within(await screen.findByRole("dialog"));
    const input = document.querySelector<HTMLInputElement>("input[type=file]");
    await page.user.upload(input as HTMLInputElement, new File(["another"], "pump.bin"));
    await dialog.findByText(/7 bytes, SHA-256/);
    await page.user.click(dialog.getByRole("button", { name: "Upload" }));
    await dialog.findByText("It is another file than the one that was declared.");
  });
});
