import { readFile } from "node:fs/promises";
import { eventually } from "@devmesh/testkit/eventually";
import type { TestMesh } from "@devmesh/testkit/mesh";
import { beforeAll, describe, expect, test } from "@jest/globals";
import { z } from "zod";
import type { RestClient } from "../../src/rest-client.ts";
import { asMaster, enrolDevice } from "../../src/tenant.ts";

const dashboardFile = new URL("../../../docs/operations/grafana-series.json", import.meta.url);

/** A request of the data source Infinity. */
const Target = z.object({
  url: z.string(),
  root_selector: z.string(),
  columns: z.array(z.object({ selector: z.string() })),
});
const Dashboard = z.object({
  panels: z.array(z.object({ title: z.string(), targets: z.array(Target) })),
  templating: z.object({
    list: z.array(z.object({ query: z.union([z.string(), z.object({ infinityQuery: Target })]).optional() })),
  }),
});

/** The ways of numbers into other programs, as the guide shows them. */
export function numbers(shared: () => TestMesh): void {
  describe("numbers of devices in other programs", () => {
    let master: RestClient;
    const id = "charted-pump";
    beforeAll(async () => {
      master = asMaster(shared());
      const device = await enrolDevice(shared(), id);
      await using client = await device.connect();
      await client.publish(`db/${id}/temp`, JSON.stringify({ celsius: 21.5 }), 1);
      await eventually(async () => {
        const { json } = await master.get(`series?device_id=${id}&topic=temp&pointer=/celsius&fn=count`);
        return json.series[0]?.points.length === 1;
      });
    }, 120_000);

    test("each request of the dashboard for Grafana is answered with the columns that it shows", async () => {
      const dashboard = Dashboard.parse(JSON.parse(await readFile(dashboardFile, "utf8")));
      const values = new Map([
        ["device:csv", id],
        ["topic:percentencode", "temp"],
        ["pointer:percentencode", "%2Fcelsius"],
        ["__from:date:iso", new Date(Date.now() - 86_400_000).toISOString()],
        ["__to:date:iso", new Date(Date.now() + 60_000).toISOString()],
        ["every", "auto"],
      ]);
      const filled = (url: string) =>
        url.replaceAll(/\$\{([^}]+)\}/g, (variable, name) => values.get(name) ?? variable);
      const targets = dashboard.panels.flatMap((panel) => panel.targets);
      expect(targets).toHaveLength(2);
      for (const { url, columns, root_selector } of targets) {
        const { status, json } = await master.get(filled(url).slice(1));
        expect([url, status]).toEqual([url, 200]);
        const names = columns.map(({ selector }) => selector);
        expect(names).toEqual(["time", "device", ...json.fn]);
        const read = [...root_selector.matchAll(/"(\w+)": \$\[(\d)\]/g)].map(([, name, nth]) => [
          name,
          Number(nth),
        ]);
        expect(read).toEqual(["time", ...json.fn].map((name, nth) => [name, nth]));
        expect(json.series).toEqual([expect.objectContaining({ device_id: id })]);
        for (const point of json.series[0].points) expect(point).toHaveLength(names.length - 1);
      }
      const lists = dashboard.templating.list.flatMap(({ query }) =>
        typeof query === "object" ? [query.infinityQuery] : [],
      );
      expect(lists).toHaveLength(1);
      for (const { url } of lists) {
        const { status, json } = await master.get(url.slice(1));
        expect([url, status]).toEqual([url, 200]);
        expect(json).toEqual(expect.arrayContaining([expect.objectContaining({ id })]));
      }
    });
  });
}
