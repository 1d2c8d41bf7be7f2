import { createMetrics } from "@devmesh/service-kit/metrics";
import { expect, test } from "@jest/globals";
import { createDataMetrics } from "../src/data-metrics.ts";
import { tempStore } from "./temp-store.ts";

test("what is not known is absent, and comes and goes with the knowledge", async () => {
  await using temp = await tempStore();
  const { registry } = createMetrics();
  let waiting: number | null = null;
  createDataMetrics(
    registry,
    temp.store,
    async () => waiting ?? Promise.reject(new Error("cannot be asked")),
  );
  const scraped = async () =>
    (await registry.metrics()).split("\n").filter((line) => line.startsWith("devmesh_data_"));
  const oldest = "devmesh_data_oldest_record_timestamp_seconds";
  const backlog = "devmesh_data_backlog_messages";

  const empty = await scraped();
  expect(empty.some((line) => line.startsWith(oldest) || line.startsWith(backlog))).toBe(false);
  expect(empty.some((line) => line.startsWith("devmesh_data_store_bytes "))).toBe(true);

  waiting = 3;
  const payload = Buffer.from("1");
  const record = {
    delivery: null,
    timestamp: 5_000,
    deviceId: "a",
    topic: "db/a/x",
    payload,
    encoding: "text",
  } as const;
  await temp.store.append([record]);
  expect(await scraped()).toEqual(expect.arrayContaining([`${oldest} 5`, `${backlog} 3`]));

  waiting = null;
  await temp.store.deleteHeaviest(1, 0);
  expect((await scraped()).some((line) => line.startsWith(oldest) || line.startsWith(backlog))).toBe(false);
});
