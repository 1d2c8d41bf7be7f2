import type { MeshState } from "@devmesh/contracts/model/mesh-state";
import { describe, expect, test } from "@jest/globals";
import {
  figuresTogether,
  type MeshObservation,
  observe,
  rememberedMs,
} from "../src/features/mesh/observation.ts";

const begin = Date.parse("2026-01-31T12:00:00.000Z");
const time = (seconds: number) => new Date(begin + seconds * 1_000).toISOString();

type Replica = MeshState["services"][number]["replicas"][number];
type Counted = readonly [requests: number, errors: number, total_ms: number];

function replica(id: string, endpoints: Readonly<Record<string, Counted>>, started = time(-60)): Replica {
  return {
    id,
    figures: {},
    release: "0.1.0",
    version: "1.0.0",
    started,
    endpoints: Object.entries(endpoints).map(([name, [requests, errors, total_ms]]) => ({
      name,
      requests,
      errors,
      total_ms,
      mean_ms: requests === 0 ? 0 : total_ms / requests,
    })),
  };
}

function reading(seconds: number, services: Readonly<Record<string, readonly Replica[]>>): MeshState {
  return {
    timestamp: time(seconds),
    services: Object.entries(services).map(([name, replicas]) => ({ name, replicas: [...replicas] })),
    queues: { data: 0, rpc_bridge: 0, jobs: 0, mail: 0, dead_mail: null },
  };
}

function observeAll(readings: readonly MeshState[], expected: readonly string[] = []): MeshObservation {
  let observation: MeshObservation | null = null;
  for (const each of readings) observation = observe(observation, each, expected);
  if (observation === null) throw new Error("no reading");
  return observation;
}

describe("the figures of the mesh", () => {
  const counting = (id: string, figures: Replica["figures"]): Replica => ({ ...replica(id, {}), figures });

  test("are the growth of all replicas a second, and the newest of what each replica knows alike", () => {
    const observation = observeAll([
      reading(0, { keys: [counting("a", { logins: 10 }), counting("b", { logins: 100 })] }),
      reading(2, {
        keys: [counting("a", { logins: 14 }), counting("b", { logins: 6 })],
        devices: [counting("c", { devices_online: 5 })],
      }),
    ]);
    expect(figuresTogether(observation)).toEqual({
      recordsPerSecond: null,
      // That of b began again.
      loginsPerSecond: 5,
      refusedPerSecond: null,
      deviceCallsPerSecond: null,
      devicesOnline: 5,
      storedBytes: null,
    });
  });

  test("have device calls from the bridge", () => {
    const calls = (seconds: number, requests: number) =>
      reading(seconds, { "rpc-bridge": [replica("r", { call: [requests, 0, 0] })] });
    expect(figuresTogether(observeAll([calls(0, 5), calls(2, 9)])).deviceCallsPerSecond).toBe(2);
  });
});

describe("the activity of a replica", () => {
  test("is what its counters grew by since the last reading, and unknown with the first", () => {
    const first = reading(0, { devices: [replica("a", { read: [100, 4, 1_000], list: [7, 0, 70] })] });
    const next = reading(2.5, { devices: [replica("a", { read: [200, 9, 1_400], list: [7, 0, 70] })] });
    expect(observeAll([first]).services[0]?.activity).toBeNull();
    const [service] = observeAll([first, next]).services;
    expect(service?.endpoints).toEqual([
      {
        name: "read",
        counters: { requests: 200, errors: 9, total_ms: 1_400 },
        activity: { requestsPerSecond: 40, errorsPerSecond: 2, meanMs: 4 },
      },
      {
        name: "list",
        counters: { requests: 7, errors: 0, total_ms: 70 },
        activity: { requestsPerSecond: 0, errorsPerSecond: 0, meanMs: null },
      },
    ]);
    expect(service?.activity).toEqual({ requestsPerSecond: 40, errorsPerSecond: 2, meanMs: 4 });
  });

  test("is never negative: counters that fell began anew", () => {
    const [service] = observeAll([
      reading(0, { devices: [replica("a", { read: [1_000, 10, 5_000] })] }),
      reading(2, { devices: [replica("a", { read: [6, 1, 12] })] }),
    ]).services;
    expect(service?.activity).toEqual({ requestsPerSecond: 3, errorsPerSecond: 0.5, meanMs: 2 });
  });

  test("is not compared with that of the replica it took the place of", () => {
    const [service] = observeAll([
      reading(0, { devices: [replica("a", { read: [1_000, 0, 5_000] })] }),
      reading(2, { devices: [replica("b", { read: [6, 0, 12] }, time(1))] }),
    ]).services;
    expect(service?.replicas.map(({ id, answers, activity }) => [id, answers, activity])).toEqual([
      ["a", false, null],
      ["b", true, null],
    ]);
    expect(service?.activity).toBeNull();
  });

  test("is kept when the same reading comes twice, and counts from the last reading that had the replica", () => {
    const first = reading(0, { devices: [replica("a", { read: [0, 0, 0] })] });
    const second = reading(2, { devices: [replica("a", { read: [20, 0, 20] })] });
    const without = reading(4, {});
    const late = reading(6, { devices: [replica("a", { read: [100, 0, 100] })] });
    expect(observeAll([first, second, second]).services[0]?.activity?.requestsPerSecond).toBe(10);
    expect(observeAll([first, second, without, late]).services[0]?.activity?.requestsPerSecond).toBe(20);
  });

  test("is unknown between the readings of two gateways whose clocks disagree", () => {
    const [service] = observeAll([
      reading(10, { devices: [replica("a", { read: [5, 0, 5] })] }),
      reading(9, { devices: [replica("a", { read: [9, 0, 9] })] }),
    ]).services;
    expect(service?.activity).toBeNull();
  });
});

describe("a service", () => {
  test("is as busy as its replicas that answer are together", () => {
    const [service] = observeAll([
      reading(0, { devices: [replica("a", { read: [0, 0, 0] }), replica("b", { read: [0, 0, 0] })] }),
      reading(2, { devices: [replica("a", { read: [30, 2, 30] }), replica("b", { read: [10, 0, 50] })] }),
    ]).services;
    expect(service?.activity).toEqual({ requestsPerSecond: 20, errorsPerSecond: 1, meanMs: 2 });
    expect(service?.endpoints).toEqual([
      {
        name: "read",
        counters: { requests: 40, errors: 2, total_ms: 80 },
        activity: { requestsPerSecond: 20, errorsPerSecond: 1, meanMs: 2 },
      },
    ]);
  });

  test("that the mesh should have is there without a replica, in its place of the alphabet", () => {
    const { services } = observeAll([reading(0, { devices: [replica("a", {})] })], ["data", "devices"]);
    expect(services.map(({ name, replicas }) => [name, replicas.length])).toEqual([
      ["data", 0],
      ["devices", 1],
    ]);
  });

  test("remembers for a minute a replica that answers no more, and none that came back", () => {
    const with2 = { devices: [replica("a", {}, time(-9)), replica("b", {}, time(-5))] };
    const with1 = { devices: [replica("b", {}, time(-5))] };
    const ids = (...readings: MeshState[]) =>
      observeAll(readings).services[0]?.replicas.map(({ id, answers }) => (answers ? id : `${id} is gone`));
    const seconds = rememberedMs / 1_000;
    expect(ids(reading(0, with2), reading(seconds - 1, with1))).toEqual(["a is gone", "b"]);
    expect(ids(reading(0, with2), reading(2, with1), reading(4, with2))).toEqual(["a", "b"]);
    expect(ids(reading(0, with2), reading(2, with1), reading(seconds, with1))).toEqual(["b"]);
  });

  test("that the mesh need not have is forgotten with its last replica", () => {
    const readings = [reading(0, { sorter: [replica("a", {})] }), reading(1, {}), reading(61, {})];
    expect(observeAll(readings.slice(0, 2)).services).toHaveLength(1);
    expect(observeAll(readings).services).toEqual([]);
  });
});
