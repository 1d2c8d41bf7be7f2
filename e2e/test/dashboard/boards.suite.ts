import { eventually } from "@devmesh/testkit/eventually";
import type { TestMesh } from "@devmesh/testkit/mesh";
import type { MqttDevice } from "@devmesh/testkit/mqtt-device";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import type { Browser } from "playwright-core";
import { seriousViolations } from "../../src/browser/accessibility.ts";
import { noPageErrors } from "../../src/browser/page-errors.ts";
import { type Visit, visitDashboard } from "../../src/browser/visit.ts";
import { asMaster, enrolDevice } from "../../src/tenant.ts";

/** A board that is made, arranged and shown. The mesh has no board before and after. */
export function boards(browser: () => Browser, shared: () => TestMesh): void {
  describe("boards of the dashboard", () => {
    let mesh: TestMesh;
    let visit: Visit;
    let devices: readonly MqttDevice[] = [];
    const ids = ["fridge-1", "fridge-2"];

    beforeAll(async () => {
      mesh = shared();
      devices = await Promise.all(ids.map(async (id) => await (await enrolDevice(mesh, id)).connect()));
      for (const id of ids)
        await asMaster(mesh).post(`devices/${id}`, {
          shadow: { tags: { labels: ["fridge"], units: { celsius: "°C" } } },
        });
      for (const [nth, id] of ids.entries()) await publish(id, 4 + nth);
      await eventually(async () => (await asMaster(mesh).get(`devices/${ids[0]}/series`)).json.length === 1, {
        withinMs: 90_000,
      });
      visit = await visitDashboard(browser(), mesh);
      await visit.page.goto("/");
      await visit.signIn(mesh.masterKey);
    }, 180_000);
    afterAll(async () => {
      await visit?.[Symbol.asyncDispose]();
      for (const device of devices) await device[Symbol.asyncDispose]();
      for (const { id } of (await asMaster(mesh).get("boards")).json)
        await asMaster(mesh).delete(`boards/${id}`);
      for (const id of ids) await asMaster(mesh).delete(`devices/${id}`);
    }, 120_000);

    async function publish(id: string, celsius: number): Promise<void> {
      await devices[ids.indexOf(id)]?.publish(`db/${id}/air`, { celsius }, 1);
    }

    const panel = (name: string) => visit.page.getByRole("region", { name, exact: true });
    const arrange = (name: string) => visit.page.getByRole("button", { name: `Arrange ${name}` });
    const onlyBoard = async () => {
      const [{ id }] = (await asMaster(mesh).get("boards")).json;
      return (await asMaster(mesh).get(`boards/${id}`)).json;
    };
    const placesOf = async () =>
      Object.fromEntries(
        (await onlyBoard()).panels.map((each: Record<string, unknown>) => [
          each.title ?? each.fn,
          [each.x, each.y, each.w, each.h],
        ]),
      );

    test("a board is created with a chart and a value of what devices publish", async () => {
      const { page } = visit;
      await visit.goTo("Boards");
      await page.getByText("No boards yet").waitFor();
      await page.getByRole("button", { name: "New board" }).click();
      const naming = page.getByRole("dialog", { name: "New board" });
      await naming.getByLabel("Name").fill("Cold chain");
      await naming.getByRole("button", { name: "Create" }).click();
      await page.getByRole("heading", { level: 1, name: "Cold chain" }).waitFor();

      await page.getByRole("button", { name: "Add panel" }).click();
      const form = page.getByRole("dialog", { name: "Add a panel" });
      await form.getByLabel("Devices", { exact: true }).fill("label:fridge");
      await form.getByLabel("Topic").click();
      await page.getByRole("option", { name: "air" }).click();
      await form.getByLabel("Pointer into the message").click();
      await page.getByRole("option", { name: "/celsius" }).click();
      await form.getByLabel("Of the last").fill("1 h");
      await form.getByLabel("Title").fill("Air");
      await form.getByRole("button", { name: "Add" }).click();
      await panel("Air").locator("canvas").waitFor();
      for (const name of ["fridge-1 4 °C", "fridge-2 5 °C"])
        await panel("Air").getByRole("listitem").filter({ hasText: name }).waitFor();

      await page.getByRole("button", { name: "Add panel" }).click();
      await form.getByText("One value").click();
      await form.getByLabel("Devices", { exact: true }).fill("label:fridge");
      await form.getByLabel("Topic").fill("air");
      await form.getByLabel("Pointer into the message").fill("/celsius");
      await form.getByLabel("Number").selectOption("Max");
      await form.getByLabel("Title").fill("Warmest");
      await form.getByRole("button", { name: "Add" }).click();
      await panel("Warmest").getByText("5 °C").waitFor();
      await panel("Warmest").getByText("Max, last 24 h · fridge-2").waitFor();
      await eventually(async () => Object.keys(await placesOf()).length === 2);
      expect(await placesOf()).toEqual({ Air: [0, 0, 6, 4], Warmest: [6, 0, 3, 2] });
    });

    test("new numbers are shown without a reload", async () => {
      await publish("fridge-1", 9.5);
      await panel("Warmest").getByText("9.5 °C").waitFor({ timeout: 90_000 });
      await panel("Warmest").getByText("Max, last 24 h · fridge-1").waitFor();
    }, 120_000);

    test("a panel is moved and resized by the keyboard, said to screen readers, and is there after a reload", async () => {
      const { page } = visit;
      await arrange("Air").focus();
      await page.keyboard.press("Shift+ArrowDown");
      await page.keyboard.press("Shift+ArrowDown");
      await page.keyboard.press("Shift+ArrowRight");
      await page.getByRole("status").filter({ hasText: "Air: column 2, row 3, 6 wide, 4 high" }).waitFor();
      // The panel that was moved keeps the focus, though it is read after the other one now.
      await page.keyboard.press("Control+Shift+ArrowRight");
      await page.getByRole("status").filter({ hasText: "Air: column 2, row 3, 7 wide, 4 high" }).waitFor();
      const wanted = { Air: [1, 2, 7, 4], Warmest: [6, 0, 3, 2] };
      await eventually(async () => JSON.stringify(await placesOf()) === JSON.stringify(wanted));
      await page.reload();
      await panel("Air").locator("canvas").waitFor();
      const [air, warmest] = [await panel("Air").boundingBox(), await panel("Warmest").boundingBox()];
      expect(air?.y).toBeGreaterThan((warmest?.y ?? 0) + (warmest?.height ?? 0));
      expect(air?.width).toBeGreaterThan(2 * (warmest?.width ?? 0));
    });

    test("a panel is dragged to another place, and what was there moves down", async () => {
      const { page } = visit;
      const [handle, target] = [await arrange("Air").boundingBox(), await panel("Warmest").boundingBox()];
      if (handle === null || target === null) throw new Error("there is no handle");
      await page.mouse.move(handle.x + 10, handle.y + 10);
      await page.mouse.down();
      await page.mouse.move(handle.x + 200, target.y + 40, { steps: 5 });
      await page.mouse.move(handle.x + 10, target.y + 20, { steps: 5 });
      await page.mouse.up();
      await eventually(async () => (await placesOf()).Air?.[1] === 0);
      expect(await placesOf()).toEqual({ Air: [1, 0, 7, 4], Warmest: [6, 4, 3, 2] });
    });

    test("a change is refused if somebody else changed the board first, and the other change is shown", async () => {
      const { page } = visit;
      const before = await onlyBoard();
      await page.route("**/boards/*", async (route) => {
        // What the other one made is not read before the change is sent.
        if (route.request().method() === "GET") await route.fulfill({ json: before });
        else await route.continue();
      });
      await asMaster(mesh).post(`boards/${before.id}`, {
        name: "Cold chain, north",
        panels: [...before.panels, { ...before.panels[1], title: "Coldest", fn: "min", y: 6 }],
      });
      await arrange("Air").focus();
      await page.keyboard.press("Shift+ArrowLeft");
      await page.getByRole("alert").filter({ hasText: "Somebody else changed the board" }).waitFor();
      await page.unroute("**/boards/*");
      await page.getByRole("heading", { level: 1, name: "Cold chain, north" }).waitFor();
      await panel("Coldest").getByText("4 °C").waitFor();
      expect((await placesOf()).Air).toEqual([1, 0, 7, 4]);
    }, 180_000);

    test("a panel is removed, and edited", async () => {
      const { page } = visit;
      await page.getByRole("button", { name: "Remove Coldest" }).click();
      await panel("Coldest").waitFor({ state: "detached" });
      await page.getByRole("button", { name: "Edit Warmest" }).click();
      const form = page.getByRole("dialog", { name: "Edit the panel" });
      await form.getByLabel("Title").fill("Hottest");
      await form.getByRole("button", { name: "Save" }).click();
      await panel("Hottest").getByText("9.5 °C").waitFor();
      await eventually(async () => Object.keys(await placesOf()).join() === "Air,Hottest");
    });

    test("a board has no serious violation of accessibility, in the light theme and in the dark one", async () => {
      const { page } = visit;
      for (const colorScheme of ["light", "dark"] as const) {
        await page.emulateMedia({ colorScheme });
        await page.locator(`html[data-mantine-color-scheme=${colorScheme}]`).waitFor();
        expect(await seriousViolations(page)).toEqual([]);
      }
      await page.getByRole("button", { name: "Edit Hottest" }).click();
      await page.getByRole("dialog").waitFor();
      expect(await seriousViolations(page)).toEqual([]);
      await page.keyboard.press("Escape");
    });

    test("a board fills the screen of a wall, without the navigation, until Escape", async () => {
      const { page } = visit;
      await page.getByRole("button", { name: "Full screen" }).click();
      await page.getByRole("button", { name: "Leave the full screen" }).waitFor();
      const navigation = page.getByRole("navigation", { name: "Views" });
      await navigation.waitFor({ state: "hidden" });
      expect(new URL(page.url()).search).toBe("?full=1");
      expect(await seriousViolations(page)).toEqual([]);
      await page.keyboard.press("Escape");
      await navigation.waitFor();
    });

    test("a board fits on a phone, where its panels are below each other", async () => {
      const { id } = await onlyBoard();
      await using phone = await visitDashboard(browser(), mesh, {
        viewport: { width: 390, height: 844 },
        isMobile: true,
        hasTouch: true,
      });
      const { page } = phone;
      await page.goto(`/boards/${id}`);
      await phone.signIn(mesh.masterKey);
      await page.locator("canvas").waitFor();
      const boxes = await page
        .getByRole("region", { name: /Air|Hottest/ })
        .evaluateAll((panels) => panels.map((each) => each.getBoundingClientRect().toJSON()));
      expect(boxes.map(({ left, right }) => [left >= 0, right <= 390])).toEqual([
        [true, true],
        [true, true],
      ]);
      expect(boxes[1]?.top).toBeGreaterThanOrEqual(boxes[0]?.bottom);
      expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(390);
      expect(phone.pageErrors).toEqual(noPageErrors);
    });

    test("a board is deleted", async () => {
      const { page } = visit;
      await page.getByRole("button", { name: "More actions" }).click();
      await page.getByRole("menuitem", { name: "Delete the board" }).click();
      await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
      await page.getByText("No boards yet").waitFor();
    });

    test("met no violation of the page's policy, no error and no secret in a URL", () => {
      expect(visit.pageErrors).toEqual(noPageErrors);
    });
  });
}
