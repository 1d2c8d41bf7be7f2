/**
 * Frames of the dashboard in Chromium while 50,000 devices are listed, scrolled, filtered, sorted and changed, and a
 * chart of 5,000 records is drawn, against a limit of 100 ms a frame. An empty page that works 8 ms in each frame, and
 * the processor time of the longest task, show what the machine adds. `node bench/dashboard.ts [devices]`
 */
import { launchChromium, type Visit, visitDashboard } from "@devmesh/e2e/src/browser/visit.ts";
import { enrolDevice } from "@devmesh/e2e/src/tenant.ts";
import { findChromium, withoutChromium } from "@devmesh/testkit/find-chromium";
import { startMesh, type TestMesh } from "@devmesh/testkit/mesh";
import { tempFolder } from "@devmesh/testkit/temp-folder";
import type { Page } from "playwright-core";
import { frameTimesOf } from "./dashboard/frames.ts";
import { seedDevices } from "./dashboard/seeded-devices.ts";
import { type Goal, inTurns, reportFigures } from "./measure.ts";
import { numbers } from "./mesh-tenant.ts";

const count = Number(process.argv[2] ?? 50_000);
const rounds = 3;
const limitMs = 100;
/** The number of devices as the page shows it. */
const whole = count.toLocaleString("en");
const emptyPage = "an empty page that works 8 ms in each frame";

const path = await findChromium();
if (path === null) throw new Error(`this needs a browser: ${withoutChromium}`);
await using folder = await tempFolder();
const begun = performance.now();
await seedDevices(folder.path, count - 1);
console.log(`${count} devices stored in ${((performance.now() - begun) / 1_000).toFixed(1)} s`);
await using mesh = await startMesh({ dataDir: folder.path });
const browser = await launchChromium(path);
await publishRecords();

/** What a user does with the list; each resolves when the page shows the result. */
const actions: Readonly<Record<string, (visit: Visit, mesh: TestMesh) => Promise<void>>> = {
  async listed({ page, goTo }) {
    await goTo("Devices");
    await page.getByText(`100 of ${whole} devices read`).waitFor();
  },
  async "scrolled through"({ page }) {
    await page.getByRole("region", { name: "List of devices" }).evaluate(async (frame) => {
      for (;;) {
        frame.scrollTop += 4 * frame.clientHeight;
        await new Promise(requestAnimationFrame);
        const atEnd = frame.scrollTop + frame.clientHeight >= frame.scrollHeight - 1;
        if (atEnd && frame.querySelector("table")?.ariaRowCount !== "-1") return;
      }
    });
  },
  async filtered({ page }) {
    const filter = page.getByRole("combobox", { name: "Filter devices" });
    await filter.pressSequentially("site-7", { delay: 120 });
    await page.getByText(/^100 of \d[\d,]* devices read$/).waitFor();
    await filter.fill("site-7 online:true");
    await page.getByText("No device matches.").waitFor();
    await filter.clear();
    await page.keyboard.press("Escape");
    await page.getByText(`${whole} devices`, { exact: true }).waitFor();
  },
  async sorted({ page }) {
    for (const column of ["Name", "ID", "ID", "Created"]) {
      const header = page.getByRole("columnheader", { name: column });
      await header.getByRole("button").click();
      await page.locator("th[aria-sort=ascending], th[aria-sort=descending]", { hasText: column }).waitFor();
    }
  },
  async "changed by others"({ page }, { http }) {
    const changes = numbers(1_000);
    // The newest devices are the first of the list.
    const change = async () => {
      for (const nth of changes) {
        await http(`/api/v2/devices/device-${count - 2 - (nth % 10)}`, { body: { name: `Renamed ${nth}` } });
      }
    };
    await Promise.all(Array.from({ length: 8 }, change));
    await page.getByRole("region", { name: "List of devices" }).evaluate((frame) => frame.scrollTo(0, 0));
    await page.getByText("Renamed 999", { exact: true }).waitFor();
  },
  async charted({ page, goTo }) {
    await goTo("Data");
    await page.getByRole("button", { name: "Show chart", exact: true }).click();
    await page.locator("canvas").waitFor();
    await page.getByText("5,000 records read").waitFor();
  },
};

/** Publishes as many records as a chart of records draws, by one more device. */
async function publishRecords(): Promise<void> {
  await using device = await (await enrolDevice(mesh, "tank")).connect();
  const next = numbers(5_000);
  const publish = async () => {
    for (const nth of next)
      await device.publish("db/tank/level", { litres: 10 * Math.sin(nth / 50) + Math.random() }, 1);
  };
  await Promise.all(Array.from({ length: 100 }, publish));
}

const longestFrame = "longest frame";
const frame = (action: string) => `${action}, ${longestFrame}`;
const task = (action: string) => `${action}, processor time of the longest task`;

async function measureDashboard(): Promise<Record<string, number>> {
  await using visit = await visitDashboard(browser, mesh);
  await visit.page.goto("/keys");
  await visit.signIn(mesh.masterKey);
  await visit.page.getByText("signed in", { exact: true }).waitFor();
  const figures: Record<string, number> = {};
  for (const [action, act] of Object.entries(actions)) {
    const times = await frameTimesOf(browser, visit.page, () => act(visit, mesh));
    figures[frame(action)] = times.longestFrameMs;
    figures[task(action)] = times.busiestTaskMs;
  }
  return figures;
}

async function measureEmptyPage(): Promise<Record<string, number>> {
  const page = await browser.newPage();
  const times = await frameTimesOf(browser, page, () => workInEachFrame(page, { frames: 1_000, ms: 8 }));
  await page.close();
  return { [frame(emptyPage)]: times.longestFrameMs, [task(emptyPage)]: times.busiestTaskMs };
}

function workInEachFrame(page: Page, work: { readonly frames: number; readonly ms: number }): Promise<void> {
  return page.evaluate(async ({ frames, ms }) => {
    for (let nth = 0; nth < frames; nth += 1) {
      const end = performance.now() + ms;
      while (performance.now() < end);
      await new Promise(requestAnimationFrame);
    }
  }, work);
}

try {
  const measured = await inTurns(rounds, { dashboard: measureDashboard, empty: measureEmptyPage });
  console.log(`ms, of ${count} devices; median (min–max) of ${rounds} rounds`);
  const figuresOf = (name: string, figures: Readonly<Record<string, readonly number[]>>, goal?: Goal) =>
    Object.entries(figures).map(([figure, values]) => ({
      name: `${figure}, ms`,
      ours: { name, values },
      ...(goal && figure.endsWith(longestFrame) && { goal }),
    }));
  reportFigures([
    ...figuresOf("dashboard", measured.dashboard, { value: limitMs }),
    ...figuresOf("empty page", measured.empty),
  ]);
} finally {
  await browser.close();
}
