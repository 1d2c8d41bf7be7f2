import { describe, expect, test } from "@jest/globals";
import fc from "fast-check";
import type { ConnectionKey } from "../src/connections/broker-connections.ts";
import { offlineAfterMs, PresenceSets, serverGoneAfterMs } from "../src/presence/presence-sets.ts";

const connection = (connectionId: number, deviceId = "d", serverId = "S1"): ConnectionKey => ({
  deviceId,
  serverId,
  connectionId,
});
const listing = (connections: ConnectionKey[], servers = ["S1"], nameOf = (id: string) => id) => ({
  connections,
  servers: new Map(servers.map((id) => [id, nameOf(id)])),
});
const listAll = (sets: PresenceSets, listed: ConnectionKey[], now: number, servers = ["S1"]) =>
  sets.reconcile(listing(listed, servers), sets.beginListing(), now, 0);

describe("presence as sets of connections", () => {
  test("the first connection is published, a further one is not, and the end of the last one two seconds later", () => {
    const sets = new PresenceSets();
    expect(sets.connected(connection(1), 10)).toEqual([
      { kind: "online", deviceId: "d", connection: "S1/1", seenAt: 10 },
    ]);
    expect(sets.connected(connection(2), 20)).toEqual([]);
    sets.disconnected(connection(1), 30);
    expect([sets.isOnline("d"), sets.nextDueAt]).toEqual([true, null]);
    sets.disconnected(connection(2), 40);
    expect([sets.isOnline("d"), sets.nextDueAt]).toEqual([false, 40 + offlineAfterMs]);
    expect(sets.takeDue(39 + offlineAfterMs)).toEqual([]);
    expect(sets.takeDue(40 + offlineAfterMs)).toEqual([
      { kind: "offline", deviceId: "d", connection: "S1/2", seenAt: 40 },
    ]);
    expect(sets.nextDueAt).toBeNull();
  });

  test("a device that has gone was seen until then, also before that is published", () => {
    const sets = new PresenceSets();
    sets.connected(connection(1), 10);
    expect([sets.departedAt("d"), sets.devicesOnline, sets.connections]).toEqual([null, 1, 1]);
    sets.disconnected(connection(1), 900);
    expect([sets.departedAt("d"), sets.devicesOnline, sets.connections]).toEqual([900, 0, 0]);
    sets.takeDue(900 + offlineAfterMs);
    expect(sets.departedAt("d")).toBeNull();
  });

  test("a takeover, a quick return and a login that fails at once publish nothing", () => {
    const sets = new PresenceSets();
    sets.connected(connection(1), 0);
    expect(sets.connected(connection(2, "d", "S2"), 1)).toEqual([]);
    sets.disconnected(connection(1), 2);
    expect(sets.nextDueAt).toBeNull();
    sets.disconnected(connection(2, "d", "S2"), 3);
    expect(sets.connected(connection(3), 500)).toEqual([]);
    expect([sets.nextDueAt, sets.takeDue(99_999)]).toEqual([null, []]);
  });

  test("an end that comes before its beginning leaves no connection", () => {
    const sets = new PresenceSets();
    sets.disconnected(connection(1), 0);
    expect(sets.connected(connection(1), 5)).toEqual([]);
    expect(sets.isOnline("d")).toBe(false);
    expect(sets.connected(connection(2), 6)).toHaveLength(1);
  });

  test("the same number on another server is another connection", () => {
    const sets = new PresenceSets();
    sets.connected(connection(1, "d", "S1"), 0);
    sets.disconnected(connection(1, "d", "S2"), 1);
    expect(sets.isOnline("d")).toBe(true);
  });

  test("a listing adds unknown connections and drops what two in a row do not name", () => {
    const sets = new PresenceSets();
    sets.connected(connection(1, "killed"), 0);
    expect(listAll(sets, [connection(2, "quiet")], 10)).toEqual({
      changes: [{ kind: "online", deviceId: "quiet", connection: "S1/2", seenAt: 10 }],
      missing: 1,
    });
    expect(sets.isOnline("killed")).toBe(true);
    expect(sets.reconcile(listing([connection(2, "quiet")]), sets.beginListing(), 20, 7)).toEqual({
      changes: [],
      missing: 0,
    });
    expect(sets.isOnline("killed")).toBe(false);
    expect(sets.takeDue(20 + offlineAfterMs)).toEqual([
      { kind: "offline", deviceId: "killed", connection: "S1/1", seenAt: 7 },
    ]);
  });

  test("connections of a server that does not answer are kept while it may be stopping", () => {
    const sets = new PresenceSets();
    sets.connected(connection(1), 0);
    const at = [1, 2, 3, serverGoneAfterMs, serverGoneAfterMs + 1];
    expect(at.map((now) => listAll(sets, [], now, []).missing)).toEqual([1, 1, 1, 1, 0]);
    expect(sets.isOnline("d")).toBe(false);
  });

  test("connections of a server are gone when one of the same name answers in its place", () => {
    const sets = new PresenceSets();
    sets.connected(connection(1, "d", "S1"), 0);
    sets.connected(connection(1, "e", "S3"), 0);
    const list = (servers: string[], now: number) =>
      sets.reconcile(
        listing([], servers, (id) => (id === "S3" ? "two" : "one")),
        sets.beginListing(),
        now,
        0,
      );
    list(["S1", "S3"], 1);
    list(["S2"], 2);
    expect(["d", "e"].map((id) => sets.isOnline(id))).toEqual([false, true]);
  });

  test("a connection that was thought lost and turns up again is published anew, not under the earlier id", () => {
    const sets = new PresenceSets();
    const first = sets.connected(connection(1), 0);
    listAll(sets, [], 1);
    listAll(sets, [], 2);
    sets.takeDue(2 + offlineAfterMs);
    const { changes } = listAll(sets, [connection(1)], 30_000);
    expect(changes).toEqual([
      { ...first[0], connection: expect.not.stringMatching(/^S1\/1$/), seenAt: 30_000 },
    ]);
    sets.disconnected(connection(1), 40_000);
    expect(sets.takeDue(50_000)).toMatchObject([{ kind: "offline", connection: changes[0]?.connection }]);
  });

  test("a listing that names a connection again forgives an earlier miss", () => {
    const sets = new PresenceSets();
    sets.connected(connection(1), 0);
    expect(listAll(sets, [], 1).missing).toBe(1);
    expect(listAll(sets, [connection(1)], 2).missing).toBe(0);
    expect(listAll(sets, [], 3).missing).toBe(1);
    expect(sets.isOnline("d")).toBe(true);
  });

  test("a connection opened while the listing ran is not dropped, however often", () => {
    const sets = new PresenceSets();
    for (let round = 0; round < 5; round++) {
      const begun = sets.beginListing();
      sets.connected(connection(round, `d${round}`), round);
      expect(sets.reconcile(listing([]), begun, round, 0).missing).toBeLessThanOrEqual(round);
      expect(sets.isOnline(`d${round}`)).toBe(true);
    }
  });

  test("a connection that ended while the listing ran does not come back with it", () => {
    const sets = new PresenceSets();
    sets.connected(connection(1), 0);
    const begun = sets.beginListing();
    sets.disconnected(connection(1), 1);
    expect(sets.reconcile(listing([connection(1)]), begun, 2, 0).changes).toEqual([]);
    expect(sets.isOnline("d")).toBe(false);
  });

  test("devices online before the start are published offline when no server lists them, others are not published again", () => {
    const sets = new PresenceSets(["gone", "still"]);
    expect(sets.devicesOnline).toBe(2);
    expect(listAll(sets, [connection(1, "still")], 0)).toEqual({ changes: [], missing: 0 });
    expect([sets.isOnline("gone"), sets.devicesOnline]).toEqual([false, 1]);
    expect(sets.takeDue(offlineAfterMs)).toEqual([
      { kind: "offline", deviceId: "gone", connection: null, seenAt: 0 },
    ]);
    expect(sets.connected(connection(2, "gone"), 9_999)).toHaveLength(1);
  });

  test("while a server lists nothing, since it is about to stop, devices online before the start stay so", () => {
    const sets = new PresenceSets(["kept", "moved"], 3);
    const moved = connection(1, "moved");
    for (let now = 0; now < 10_000; now += 1_000)
      expect(listAll(sets, [], now, ["S1", "S2"]).missing).toBe(2);
    expect(sets.connected(moved, 10_000)).toEqual([]);
    expect(sets.isOnline("kept")).toBe(true);
    expect(listAll(sets, [moved], 11_000, ["S1", "S2", "S3"])).toEqual({ changes: [], missing: 0 });
    expect(sets.isOnline("kept")).toBe(false);
    const forgotten = new PresenceSets(["kept"], 3);
    listAll(forgotten, [], 0, ["S1"]);
    listAll(forgotten, [], serverGoneAfterMs, ["S1"]);
    expect(forgotten.isOnline("kept")).toBe(false);
  });

  test("whatever happens in whatever order, what is published alternates and ends with the truth", () => {
    const step = fc.record({
      kind: fc.constantFrom("connect", "disconnect", "list", "wait"),
      number: fc.integer({ min: 0, max: 5 }),
      device: fc.constantFrom("a", "b"),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const sets = new PresenceSets();
        const open = new Map<number, string>();
        const published: Record<string, string[]> = { a: [], b: [] };
        const publish = (changes: readonly { kind: string; deviceId: string }[]) => {
          for (const { kind, deviceId } of changes) published[deviceId]?.push(kind);
        };
        let now = 0;
        for (const [at, { kind, number, device }] of steps.entries()) {
          now += kind === "wait" ? 3_000 : 10;
          if (kind === "connect") {
            open.set(at, device);
            publish(sets.connected(connection(at, device), now));
          } else if (kind === "disconnect") {
            const ended = [...open.keys()][number];
            if (ended !== undefined) {
              sets.disconnected(connection(ended, open.get(ended)), now);
              open.delete(ended);
            }
          } else if (kind === "list") {
            publish(
              listAll(
                sets,
                [...open].map(([n, deviceId]) => connection(n, deviceId)),
                now,
              ).changes,
            );
          }
          publish(sets.takeDue(now));
        }
        publish(sets.takeDue(now + offlineAfterMs));
        for (const device of ["a", "b"]) {
          const online = [...open.values()].includes(device);
          expect(sets.isOnline(device)).toBe(online);
          const expected = published[device]?.map((_, at) => (at % 2 === 0 ? "online" : "offline"));
          expect(published[device]).toEqual(expected);
          expect(published[device]?.at(-1) ?? "offline").toBe(online ? "online" : "offline");
        }
      }),
      { numRuns: 500 },
    );
  });
});
