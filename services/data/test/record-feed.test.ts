import { dataEvents } from "@devmesh/contracts/data";
import { recordsWantedMs } from "@devmesh/contracts/gateway";
import type { DataRecord } from "@devmesh/contracts/model/data-record";
import { subscribesTo } from "@devmesh/contracts/topology";
import { connectBus } from "@devmesh/service-kit/bus";
import { createPublisher } from "@devmesh/service-kit/events/publisher";
import { subscribe } from "@devmesh/service-kit/events/subscription";
import { createLogger } from "@devmesh/service-kit/logger";
import { ManualClock } from "@devmesh/service-kit/testing/manual-clock";
import { eventually } from "@devmesh/testkit/eventually";
import { startNatsServer } from "@devmesh/testkit/nats-server";
import { afterAll, beforeAll, beforeEach, expect, test } from "@jest/globals";
import { createRecordFeed, type RecordFeed } from "../src/ingestion/record-feed.ts";
import type { DataMessage } from "../src/store/data-store.ts";

const log = createLogger({ service: "data", level: "silent" });
const stack = new AsyncDisposableStack();
const clock = new ManualClock();
const received: DataRecord[][] = [];
let feed: RecordFeed;

beforeAll(async () => {
  const server = stack.use(await startNatsServer());
  const bus = await connectBus({ url: server.url, name: "data", log });
  stack.defer(() => bus.close());
  subscribe(
    bus,
    subscribesTo(dataEvents, ["stored"]),
    { stored: ({ records }) => void received.push(records) },
    { mode: "each" },
  );
  feed = createRecordFeed(await createPublisher(bus, dataEvents), clock);
});
afterAll(async () => {
  await stack.disposeAsync();
});
beforeEach(() => {
  feed.want();
  received.length = 0;
});

function message(payload: string | Uint8Array, more: Partial<DataMessage> = {}): DataMessage {
  const timestamp = Date.parse("2026-01-01T00:00:00.000Z");
  return {
    delivery: null,
    timestamp,
    deviceId: "pump",
    topic: "db/pump/temp",
    payload: Buffer.from(payload),
    encoding: "text",
    ...more,
  };
}

test("what was stored is published as queries return it, in order; what has no record is not", async () => {
  feed.publish(
    [message("21.5"), message("again"), message(Buffer.from([0xff]), { encoding: "base64" })],
    [7, null, 8],
  );
  await eventually(() => received.length === 1);
  const common = { timestamp: "2026-01-01T00:00:00.000Z", device_id: "pump", topic: "db/pump/temp" };
  expect(received[0]).toEqual([
    { id: 7, ...common, message: "21.5" },
    { id: 8, ...common, message: "/w==", encoding: "base64" },
  ]);
});

test("a large batch is published in parts that the broker accepts, whatever its texts grow to as JSON", async () => {
  const quotes = message('"'.repeat(100_000));
  const controls = message("\u0001".repeat(60_000));
  const batch = Array.from({ length: 10 }, (_, at) => (at % 2 === 0 ? quotes : controls));
  feed.publish(
    batch,
    batch.map((_, at) => at),
  );
  await eventually(() => received.flat().length === batch.length);
  expect(received.flat().map(({ id }) => id)).toEqual(batch.map((_, at) => at));
});

test("nothing is published once no gateway has wanted records for a while, until somebody does again", async () => {
  await clock.advance(recordsWantedMs);
  feed.publish([message("in time")], [1]);
  await clock.advance(1);
  feed.publish([message("too late")], [2]);
  feed.want();
  feed.publish([message("wanted")], [3]);
  await eventually(() => received.length === 2);
  expect(received.flat().map(({ id }) => id)).toEqual([1, 3]);
});
