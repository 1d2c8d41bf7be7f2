import { setTimeout as sleep } from "node:timers/promises";
import { eventually } from "@devmesh/testkit/eventually";
import { afterAll, afterEach, beforeAll, expect, test } from "@jest/globals";
import { describeOverStores } from "./describe-over-stores.ts";
import type { JobsFixture } from "./jobs-fixture.ts";
import type { ScriptedDevice } from "./scripted-device.ts";
import { updatesOf } from "./updates-mesh.ts";

/** How often parts are killed while devices get firmware; more by command (README.md). */
const kills = Number(process.env.UPDATE_KILLS ?? 4);

/** More of them come after the end of an update. */
const killsOfRound = 4;

describeOverStores("updates while parts are killed,", (start) => {
  let mesh: JobsFixture;
  const { add, create } = updatesOf(() => mesh);
  beforeAll(async () => {
    mesh = await start();
  });
  afterEach(() => mesh.clear());
  afterAll(async () => await mesh?.[Symbol.asyncDispose]());

  /** Updates twelve devices in each way while parts of the mesh are killed, and expects that all get there once. */
  async function updateDespite(interrupts: readonly (() => Promise<void>)[]): Promise<void> {
    const devices = Array.from({ length: 12 }, (_, at): ScriptedDevice => {
      const device: ScriptedDevice = add(`d${at}`, {
        offset: at % 3 === 1,
        awayMs: 100 + 50 * at,
        onUpdate() {
          device.install();
          return { sent: true, outcome: "gone" };
        },
      });
      return device;
    });
    for (const { id } of devices) {
      const device = mesh.devices.get(id);
      if (device === undefined) throw new Error("no device");
      const { answer } = device;
      device.answer = async (func, params) => {
        await sleep(30);
        return await answer(func, params);
      };
    }
    const ids = (kind: number) => devices.filter((_, at) => at % 3 === kind).map(({ id }) => id);
    // An attempt ends with the answer that a killed part does not pass on.
    const retry = { attempts: 10, after: "PT1S" };
    const jobs = [
      await create({ via: "push", stable: "PT1S" }, { target: { ids: [...ids(0), ...ids(1)] }, retry }),
      await create({ via: "url", stable: "PT1S", timeout: "PT20S" }, { target: { ids: ids(2) }, retry }),
    ];
    for (const interrupt of interrupts) {
      await sleep(300 + Math.random() * 1_500);
      await interrupt();
    }
    for (const id of jobs)
      await eventually(async () => (await mesh.readJob(id)).state === "done", { withinMs: 120_000 });
    const ends = (await Promise.all(jobs.map((id) => mesh.listJobExecutions(id)))).flat();
    expect(ends.map(({ state }) => state)).toEqual(devices.map(() => "succeeded"));
    expect(devices.map(({ version }) => version)).toEqual(devices.map(() => "2.0"));
    expect(devices.map(({ installed }) => installed)).toEqual(devices.map(() => 1));
  }

  /** Kills so often, a few times for each update. */
  async function killAgainAndAgain(kill: (nth: number) => Promise<void>): Promise<void> {
    for (let killed = 0; killed < kills; killed += killsOfRound) {
      const round = Array.from({ length: Math.min(killsOfRound, kills - killed) }, (_, nth) => nth);
      await updateDespite(round.map((nth) => () => kill(nth)));
      await mesh.clear();
    }
  }

  test(
    "each device is updated although its leader is killed again and again",
    () => killAgainAndAgain(mesh.takeOver),
    240_000 + kills * 20_000,
  );

  test(
    "each device is updated although the bridge, the broker and the store are killed again and again, too",
    () => {
      const { restartBridge, restartBroker, takeOver, interruptStore } = mesh;
      const parts = [restartBridge, restartBroker, takeOver, ...(interruptStore ? [interruptStore] : [])];
      return killAgainAndAgain((nth) => parts[nth % parts.length]?.() ?? Promise.resolve());
    },
    240_000 + kills * 20_000,
  );
});
