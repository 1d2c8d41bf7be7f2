import { join } from "node:path";
import { eventually } from "@devmesh/testkit/eventually";
import { type StartedService, startService } from "@devmesh/testkit/service-process";
import { startTcpProxy, type TcpProxy } from "@devmesh/testkit/tcp-proxy";
import { type TempFolder, tempFolder } from "@devmesh/testkit/temp-folder";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import { type DataCaller, dataCaller } from "./data-caller.ts";
import { type DeviceBroker, startDeviceBroker } from "./device-broker.ts";

let broker: DeviceBroker;
let caller: DataCaller;
let folder: TempFolder;
let proxy: TcpProxy;

beforeAll(async () => {
  broker = await startDeviceBroker();
  caller = dataCaller(await broker.connectService("gateway"));
});
afterAll(async () => await broker?.[Symbol.asyncDispose]());
beforeEach(async () => {
  folder = await tempFolder();
  proxy = await startTcpProxy(Number(new URL(broker.serviceEnvironment.NATS_URL ?? "").port));
});
afterEach(async () => {
  await proxy.close();
  await folder.remove();
});

const environment = () => ({
  ...broker.serviceEnvironment,
  NATS_URL: `nats://127.0.0.1:${proxy.port}`,
  STORE_URL: `sqlite:${join(folder.path, "data.db")}`,
  // As with `npm start`.
  DRAIN_MS: "10000",
});

/** Sends SIGTERM, and once more; the exit code, with the log of a stop that failed. */
async function stopOf({ child, ended, output }: Pick<StartedService, "child" | "ended" | "output">) {
  child.kill("SIGTERM");
  child.kill("SIGTERM");
  const code = await ended;
  return { code, log: code === 0 ? "" : output() };
}
const inOrder = { code: 0, log: "" };

describe("a stop ends with 0", () => {
  test("while it stores messages and answers queries", async () => {
    await using service = await startService("data", environment());
    const device = await broker.connectDevice("pump");
    const publishing = (async () => {
      for (let number = 0; number < 2_000; number++)
        await device.publish(`db/pump/${number % 7}`, "x".repeat(500), number % 2 === 0 ? 0 : 1);
    })();
    await eventually(async () => (await service.metric('devmesh_data_records_stored_total{qos="1"}')) > 50);
    const queries = Array.from({ length: 20 }, () =>
      caller.allRecords({ filter: "xxxx" }).catch((error: Error) => error),
    );
    expect(await stopOf(service)).toEqual(inOrder);
    await Promise.all(queries);
    await publishing;
    await device.leave();
  });

  test.each(["cut", "stall"] as const)("when its broker is lost (%s)", async (lose) => {
    await using service = await startService("data", environment());
    proxy[lose]();
    expect(await stopOf(service)).toEqual(inOrder);
  });
});
