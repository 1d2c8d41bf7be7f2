import { historyMinutes, MeshHistory, type MeshMinute } from "@devmesh/contracts/model/mesh-history";
import type { MeshState, ReplicaFigures } from "@devmesh/contracts/model/mesh-state";
import { announce } from "@devmesh/service-kit/process/discovery";
import { ManualClock } from "@devmesh/service-kit/testing/manual-clock";
import { eventually } from "@devmesh/testkit/eventually";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { createMeshHistory } from "../src/mesh/mesh-history.ts";
import { minuteBetween, withKnownQueues } from "../src/mesh/mesh-minute.ts";
import { type Fixture, startFixture } from "./gateway-fixture.ts";

const began = Date.parse("2026-03-01T12:00:00Z");
const minute = 60_000;
const timeOf = (nth: number) => new Date(began + nth * minute);

function stateOf(
  nth: number,
  figures: Readonly<Record<string, ReplicaFigures>>,
  started: Readonly<Record<string, number>> = {},
): MeshState {
  return {
    timestamp: timeOf(nth).toISOString(),
    services: [
      {
        name: "a service",
        replicas: Object.entries(figures).map(([id, ofIt]) => ({
          id,
          release: null,
          version: "1.0.0",
          started: timeOf(started[id] ?? -9).toISOString(),
          endpoints: [],
          figures: ofIt,
        })),
      },
    ],
    hanging: [],
    queues: { data: 3, rpc_bridge: 4, jobs: 0, mail: null, dead_mail: null },
  };
}

const emptyMinute = (at: Date): MeshMinute => ({
  at: at.toISOString(),
  devices_online: null,
  records: null,
  logins: null,
  logins_refused: null,
  device_calls: null,
  waiting: null,
});

describe("a minute of the mesh", () => {
  test("has the growth of all replicas a second, and the newest numbers of what is there", () => {
    const before = stateOf(0, {
      one: { records_stored: 100 },
      two: { records_stored: 50, devices_online: 1 },
    });
    const now = stateOf(1, { one: { records_stored: 160 }, two: { records_stored: 80, devices_online: 7 } });
    expect(minuteBetween(before, now, timeOf(1))).toEqual({
      ...emptyMinute(timeOf(1)),
      devices_online: 7,
      records: 1.5,
      waiting: 7,
    });
  });

  test("counts all of a replica that has just started, and nothing of one that did not answer before", () => {
    const before = stateOf(0, {});
    const now = stateOf(1, { fresh: { logins: 60 }, back: { logins: 9_000 } }, { fresh: 0.5 });
    expect(minuteBetween(before, now, timeOf(1)).logins).toBe(1);
  });

  test("has what waited last of a service that hangs, since it handles nothing", () => {
    const hangs = (nth: number): MeshState => {
      const state = stateOf(nth, {});
      return { ...state, hanging: ["rpc-bridge"], queues: { ...state.queues, data: 10, rpc_bridge: null } };
    };
    const first = withKnownQueues(stateOf(0, {}), hangs(1));
    const second = withKnownQueues(first, hangs(2));
    expect(minuteBetween(first, second, timeOf(2)).waiting).toBe(14);
    expect(minuteBetween(null, withKnownQueues(null, hangs(1)), timeOf(1)).waiting).toBeNull();
  });

  test("has no rates without a reading before", () => {
    const { logins, devices_online } = minuteBetween(null, stateOf(1, { one: { logins: 5 } }), timeOf(1));
    expect([logins, devices_online]).toEqual([null, null]);
  });
});

describe("the history of the mesh", () => {
  let fixture: Fixture;
  const clock = new ManualClock(timeOf(0));
  let figures = { records_stored: 0, devices_online: 0 };
  beforeAll(async () => {
    fixture = await startFixture({ clock });
    announce(fixture.services, {
      description: "counts",
      served: [],
      figures: {
        records_stored: () => figures.records_stored,
        devices_online: () => figures.devices_online,
      },
    });
    await fixture.services.flush();
  });
  afterAll(async () => fixture[Symbol.asyncDispose]());

  async function read(): Promise<MeshHistory> {
    const answer = await fixture.fetch("/api/v2/mesh/history");
    expect(answer.status).toBe(200);
    return MeshHistory.parse(await answer.json());
  }

  test("is empty at first, and grows by each minute that passes", async () => {
    expect(await read()).toEqual([]);
    const timers = clock.pending;
    figures = { records_stored: 10, devices_online: 2 };
    await clock.advance(minute);
    await eventually(async () => (await read()).length === 1);
    // The gateway waits for the next minute.
    await eventually(() => clock.pending === timers);
    figures = { records_stored: 70, devices_online: 3 };
    await clock.advance(minute);
    await eventually(async () => (await read()).length === 2);
    expect(await read()).toMatchObject([
      { at: timeOf(1).toISOString(), records: null, devices_online: 2 },
      { at: timeOf(2).toISOString(), records: 1, devices_online: 3 },
    ]);
  });

  test("has each minute once, whichever gateway was first, and forgets those a day old", async () => {
    const [one, other] = [createMeshHistory(fixture.services), createMeshHistory(fixture.services)];
    await Promise.all([one.append(emptyMinute(timeOf(3))), other.append(emptyMinute(timeOf(3)))]);
    expect((await read()).map(({ at }) => at)).toEqual([1, 2, 3].map((nth) => timeOf(nth).toISOString()));
    for (let nth = 4; nth <= historyMinutes + 1; nth++) await one.append(emptyMinute(timeOf(nth)));
    const kept = await read();
    expect(kept).toHaveLength(historyMinutes);
    expect(kept[0]?.at).toBe(timeOf(2).toISOString());
  });

  test("is kept over a restart of the broker, and cannot be read without it", async () => {
    const store = createMeshHistory(fixture.services);
    const known = await store.read();
    expect(known).toHaveLength(historyMinutes);
    await fixture.server.restart();
    expect(await eventually(() => store.read())).toEqual(known);
    await fixture.server.stop();
    await expect(store.read()).rejects.toThrow();
  });
});
