import { defaultAcl } from "@devmesh/contracts/model/acl";
import type { JsonObject } from "@devmesh/contracts/model/json";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import type {
  PendingCreation,
  PendingDeletion,
  PendingOperation,
  PendingRotation,
} from "../src/pending-operation.ts";
import { emptyShadow } from "../src/shadow/stored-shadow.ts";
import type { DeviceDocument, DeviceStore, NewDeviceDocument } from "../src/store/device-store.ts";

/** A store that was just made, empty, and how to open the same one again after closing it. */
export interface StoreUnderTest {
  open(): Promise<DeviceStore>;
  remove(): Promise<void>;
}

const { signal } = new AbortController();

/** A device for tests that name only what they are about. */
export function newDevice(
  id: string,
  { name = null as string | null, tags = {} as JsonObject } = {},
): NewDeviceDocument {
  return {
    id,
    name,
    acl: defaultAcl,
    delta_metadata: true,
    shadow: { ...emptyShadow(1_000), tags },
    created_at: 1_000,
  };
}

/** The ids of all devices, in pages of a thousand. */
export async function walkDevices(store: DeviceStore, descending = false): Promise<string[]> {
  const walked: string[] = [];
  let after: string | undefined;
  do {
    const page =
      (await store.list({ descending, limit: 1_000, ...(after === undefined ? {} : { after }) }, signal)) ??
      [];
    walked.push(...page.map(({ id }) => id));
    after = page.at(-1)?.cursor;
  } while (after !== undefined);
  return walked;
}

const creating: PendingCreation = { kind: "creating", token: "c", claimed_until: 5 };
const rotating: PendingRotation = { kind: "rotating", token: "r", claimed_until: 6 };
const deleting: PendingDeletion = {
  kind: "deleting",
  event_id: "event",
  token: "d",
  claimed_until: 7,
  step: "wipe",
  client_ids: ["a:1"],
};

/** What every adapter of the port must do. */
export function describeDeviceStore(adapter: string, create: () => Promise<StoreUnderTest>): void {
  describe(`devices in ${adapter}`, () => {
    let place: StoreUnderTest;
    let store: DeviceStore;

    beforeEach(async () => {
      place = await create();
      store = await place.open();
    });
    afterEach(async () => {
      await store.close();
      await place.remove();
    });

    const insert = (device: NewDeviceDocument, operation: PendingOperation | null = null) =>
      store.insert(device, operation, signal);
    const listIds = async (listing: Partial<Parameters<DeviceStore["list"]>[0]> = {}) =>
      ((await store.list({ limit: 100, ...listing }, signal)) ?? []).map(({ id }) => id);

    test("a device is found as it was stored, also after a reopening", async () => {
      const device = newDevice("pump", { name: "Pümpe 🚰", tags: { labels: ["a"] } });
      expect(await insert(device)).toBe("inserted");
      await store.close();
      store = await place.open();
      const found = await store.find("pump", signal);
      expect(found).toEqual({ ...device, revision: 1, last_seen: null, position: found?.position });
      expect(found?.position).toMatch(/^[A-Za-z0-9._-]+$/);
      expect(await store.find("other", signal)).toBeNull();
      expect([await store.has("pump", signal), await store.has("other", signal)]).toEqual([true, false]);
    });

    test("an id is taken once, and the state of its owner decides the outcome", async () => {
      await insert(newDevice("a"));
      await insert(newDevice("b"), creating);
      await insert(newDevice("c"), deleting);
      expect(await insert(newDevice("a"))).toBe("exists");
      expect(await insert(newDevice("b"))).toBe("exists");
      expect(await insert(newDevice("c"))).toBe("being_deleted");
      expect(await insert(newDevice("A"))).toBe("inserted");
    });

    test("of many insertions of one id at once one succeeds", async () => {
      const outcomes = await Promise.all(Array.from({ length: 20 }, () => insert(newDevice("a"))));
      expect(outcomes.filter((outcome) => outcome === "inserted")).toHaveLength(1);
    });

    test("a document is replaced only at the revision that was read, and each replacement steps it", async () => {
      await insert(newDevice("a"));
      // Spelled out, so that each member has another value than before.
      const changed: DeviceDocument = {
        id: "a",
        name: "new",
        acl: { ...defaultAcl, rpc: ["ping"], queries: { day: { topic: "temp", pointers: ["", "/a~1b"] } } },
        delta_metadata: false,
        shadow: { ...emptyShadow(2), version: 1 },
      };
      expect(await store.replace(changed, 1, signal)).toBe(true);
      expect(await store.replace({ ...changed, name: "late" }, 1, signal)).toBe(false);
      expect(await store.find("a", signal)).toMatchObject({ ...changed, revision: 2 });
      expect(await store.replace(newDevice("none"), 1, signal)).toBe(false);
    });

    test("of concurrent replacements of one revision one succeeds", async () => {
      await insert(newDevice("a"));
      const tries = Array.from({ length: 20 }, (_, at) =>
        store.replace({ ...newDevice("a"), name: `n${at}` }, 1, signal),
      );
      expect((await Promise.all(tries)).filter(Boolean)).toHaveLength(1);
      expect((await store.find("a", signal))?.revision).toBe(2);
    });

    test("a list is in the order of creation and continues after a position, whatever is inserted or removed", async () => {
      for (const id of ["z", "m", "a", "k"]) await insert(newDevice(id));
      const first = (await store.list({ limit: 2 }, signal)) ?? [];
      expect(first.map(({ id }) => id)).toEqual(["z", "m"]);
      const after = first.at(-1)?.cursor ?? "";
      await store.beginOperation("m", [null], deleting, signal);
      await store.remove("m", "d", signal);
      await insert(newDevice("b"));
      expect(await listIds({ after })).toEqual(["a", "k", "b"]);
      expect(await listIds({ after: (await store.find("b", signal))?.position ?? "" })).toEqual([]);
    });

    test("a list is also read from the newest device back, with a filter or without", async () => {
      for (const id of ["z", "m", "a", "k"]) await insert(newDevice(id, { name: `n${id < "n"}` }));
      const first = (await store.list({ descending: true, limit: 2 }, signal)) ?? [];
      expect(first.map(({ id }) => id)).toEqual(["k", "a"]);
      const after = first.at(-1)?.cursor ?? "";
      await insert(newDevice("b"));
      expect(await listIds({ descending: true, after })).toEqual(["m", "z"]);
      expect(await listIds({ descending: true, after, limit: 1, condition: { words: ["ntrue"] } })).toEqual([
        "m",
      ]);
      expect(await listIds({ descending: true, condition: { words: ["ntrue"] } })).toEqual(["k", "a", "m"]);
    });

    describe("in the order of a value", () => {
      const fleet = [
        ["a", "2", 50],
        ["b", null, null],
        ["c", "10", 50],
        ["d", "2", 70],
        ["e", null, 50],
        ["f", "", null],
        ["g", "2", 20],
      ] as const;
      const orders = {
        version: ["b", "e", "f", "c", "a", "d", "g"],
        last_seen: ["b", "f", "g", "a", "c", "e", "d"],
      } as const;

      beforeEach(async () => {
        for (const [id, version] of fleet) {
          const device = newDevice(id, { name: id < "d" ? "early" : "late" });
          const reported: JsonObject = version === null ? {} : { ota: { fw_version: version } };
          await insert({ ...device, shadow: { ...device.shadow, reported } });
        }
        const seen = fleet.flatMap(([id, , seen_at]) =>
          seen_at === null ? [] : [{ id, online: false, seen_at }],
        );
        await store.recordPresence(seen, signal);
        await insert(newDevice("hidden"), creating);
      });

      const pages = async (
        listing: Omit<Parameters<DeviceStore["list"]>[0], "after" | "limit">,
        limit: number,
      ) => {
        const ids: string[] = [];
        for (let after: string | undefined; ; ) {
          const page = await store.list({ ...listing, limit, ...(after && { after }) }, signal);
          ids.push(...(page ?? []).map(({ id }) => id));
          after = page?.at(-1)?.cursor;
          if (after === undefined) return ids;
        }
      };

      test.each(["version", "last_seen"] as const)(
        "by %s each device is listed once, whatever the length of a page",
        async (by) => {
          for (const limit of [1, 2, 3, 7, 100]) {
            expect([limit, await pages({ by }, limit)]).toEqual([limit, orders[by]]);
            expect([limit, await pages({ by, descending: true }, limit)]).toEqual([
              limit,
              orders[by].toReversed(),
            ]);
          }
        },
      );

      test.each(["version", "last_seen"] as const)("by %s a condition selects", async (by) => {
        for (const condition of [{ words: ["early"] }, { contained: ["fw_version"] }]) {
          const met = await listIds({ condition });
          const expected = orders[by].filter((id) => met.includes(id));
          expect(expected.length).toBeGreaterThan(2);
          expect(await pages({ by, condition }, 2)).toEqual(expected);
          expect(await pages({ by, condition, descending: true }, 2)).toEqual(expected.toReversed());
        }
      });

      test("a list goes on after a device that was changed or removed meanwhile", async () => {
        const [, second] = (await store.list({ by: "version", limit: 5 }, signal))?.slice(-2) ?? [];
        expect(second?.id).toBe("a");
        await store.beginOperation("a", [null], deleting, signal);
        await store.remove("a", "d", signal);
        const after = second?.cursor ?? "";
        expect(await listIds({ by: "version", after })).toEqual(["d", "g"]);
        expect(await listIds({ by: "version", descending: true, after })).toEqual(["c", "f", "e", "b"]);
      });

      test("a cursor of another order is reported", async () => {
        const cursorIn = async (by: "version" | "last_seen") =>
          (await store.list({ by, descending: true, limit: 1 }, signal))?.[0]?.cursor ?? "";
        const after = await cursorIn("version");
        expect(await store.list({ by: "last_seen", after, limit: 1 }, signal)).toBeNull();
        expect(await store.list({ after, limit: 1 }, signal)).toBeNull();
        expect(
          await store.list({ by: "version", after: await cursorIn("last_seen"), limit: 1 }, signal),
        ).toBeNull();
        for (const invalid of ["7", "x", "", "bnVsbA", "WzEuNSxudWxsXQ"])
          expect(await store.list({ by: "version", after: invalid, limit: 1 }, signal)).toBeNull();
      });
    });

    test("an invalid position is reported", async () => {
      for (const after of ["x", "-1", "1e3", "", " 1", "9".repeat(400), "'; DROP TABLE devices"]) {
        expect(await store.list({ after, limit: 1 }, signal)).toBeNull();
      }
    });

    test("a word is a substring of id, name or one label, case-sensitive and without wildcards", async () => {
      await insert(newDevice("pump-1", { name: "Cellar 100%" }));
      await insert(newDevice("fan_2", { tags: { labels: ["roof", 'Süd\'s "x"'] } }));
      await insert(newDevice("lamp", { tags: { labels: "single" } }));
      await insert(newDevice("odd", { name: null, tags: { labels: [1, { roof: true }, null] } }));
      const expected: Record<string, string[]> = {
        pump: ["pump-1"],
        Pump: [],
        "100%": ["pump-1"],
        "%": ["pump-1"],
        _: ["fan_2"],
        roof: ["fan_2"],
        "Süd's": ["fan_2"],
        '"x"': ["fan_2"],
        'roof","S': [],
        single: ["lamp"],
        "\0": [],
      };
      for (const [filter, ids] of Object.entries(expected)) {
        expect([filter, await listIds({ condition: { words: [filter] } })]).toEqual([filter, ids]);
      }
    });

    test("labels follow a replacement", async () => {
      await insert(newDevice("a", { tags: { labels: ["old"] } }));
      await store.replace(newDevice("a", { tags: { labels: ["new"] } }), 1, signal);
      expect([
        await listIds({ condition: { words: ["old"] } }),
        await listIds({ condition: { words: ["new"] } }),
      ]).toEqual([[], ["a"]]);
    });

    test("the documents of ids are those that exist and are not hidden", async () => {
      await insert(newDevice("a"));
      await insert(newDevice("b"), creating);
      await insert(newDevice("c"));
      const found = await store.findAll(["c", "b", "none", "a"], signal);
      expect(found.map(({ id }) => id).sort()).toEqual(["a", "c"]);
    });

    test("a device pending creating or deleting is hidden, a rotating one is not", async () => {
      await insert(newDevice("a"), creating);
      await insert(newDevice("b"), deleting);
      await insert(newDevice("c"), rotating);
      for (const id of ["a", "b"]) {
        expect(await store.find(id, signal)).toBeNull();
        expect(await store.has(id, signal)).toBe(false);
        expect(await store.replace(newDevice(id), 1, signal)).toBe(false);
      }
      expect(await listIds()).toEqual(["c"]);
      expect(await store.count({}, signal)).toBe(1);
      expect(await listIds({ condition: { words: [] } })).toEqual(["c"]);
      expect(await store.replace(newDevice("c"), 1, signal)).toBe(true);
    });

    test("counts visible devices by the version they report, and those offline since before a time", async () => {
      const running = (id: string, reported: JsonObject) => {
        const device = newDevice(id);
        return { ...device, created_at: 5_000, shadow: { ...device.shadow, reported } };
      };
      await insert(running("a", { ota: { fw_version: "1" } }));
      await insert(running("b", { version: 1 }));
      await insert(running("c", {}));
      await insert(running("d", {}));
      await insert(running("hidden", {}), deleting);
      expect(await store.replace(running("d", { version: "2" }), 1, signal)).toBe(true);
      const presence = { seen_at: 9_000, online: false };
      await store.recordPresence(
        [
          { ...presence, id: "a" },
          { ...presence, id: "b", online: true },
        ],
        signal,
      );
      const counted = await store.countByFirmware([5_000, 5_001, 9_000, 9_001, 9_002], signal);
      expect(
        counted.toSorted((one, other) => String(one.version).localeCompare(String(other.version))),
      ).toEqual([
        { version: "1", devices: 2, online: 1, silent: [0, 0, 0, 1, 1] },
        { version: "2", devices: 1, online: 0, silent: [0, 1, 1, 1, 1] },
        { version: null, devices: 1, online: 0, silent: [0, 1, 1, 1, 1] },
      ]);
    });

    test("an operation is set only on a device in one of the given states", async () => {
      await insert(newDevice("a"));
      expect(await store.beginOperation("a", ["rotating"], deleting, signal)).toBe(false);
      expect(await store.beginOperation("a", [null, "rotating"], rotating, signal)).toBe(true);
      expect(await store.beginOperation("a", [null, "rotating"], deleting, signal)).toBe(true);
      expect(await store.beginOperation("a", [null, "rotating"], deleting, signal)).toBe(false);
      expect(await store.beginOperation("none", [null], deleting, signal)).toBe(false);
      expect(await store.listOperations(signal)).toEqual([{ id: "a", operation: deleting }]);
    });

    test("an operation belongs to the holder of its token, also after a reopening", async () => {
      await insert(newDevice("a"), deleting);
      const next = { ...deleting, step: "wipe", token: "e" } as const;
      expect(await store.replaceOperation("a", "wrong", next, signal)).toBe(false);
      expect(await store.replaceOperation("a", "d", next, signal)).toBe(true);
      expect(await store.replaceOperation("a", "d", null, signal)).toBe(false);
      await store.close();
      store = await place.open();
      expect(await store.listOperations(signal)).toEqual([{ id: "a", operation: next }]);
      expect(await store.remove("a", "d", signal)).toBe(false);
      expect(await store.remove("a", "e", signal)).toBe(true);
      expect(await store.listOperations(signal)).toEqual([]);
      expect(await insert(newDevice("a"))).toBe("inserted");
    });

    test("labels can be read of a hidden device", async () => {
      await insert(newDevice("a", { tags: { labels: ["site-1", "new"] } }));
      await insert(newDevice("b"));
      await store.beginOperation("a", [null], deleting, signal);
      const read = (id: string) => store.labelsOf(id, signal);
      expect([await read("a"), await read("b"), await read("none")]).toEqual([["site-1", "new"], [], []]);
    });

    test("clearing the operation of a new device shows it, and operations step no revision", async () => {
      await insert(newDevice("a"), creating);
      expect(await store.replaceOperation("a", "c", null, signal)).toBe(true);
      expect(await store.find("a", signal)).toMatchObject({ id: "a", revision: 1 });
      expect(await store.listOperations(signal)).toEqual([]);
    });

    test("a later device of the same id has another position and nothing of the old one", async () => {
      await insert(newDevice("a", { name: "old", tags: { labels: ["old"] } }));
      await store.recordPresence([{ id: "a", online: true, seen_at: 9 }], signal);
      const old = await store.find("a", signal);
      await store.beginOperation("a", [null], deleting, signal);
      await store.remove("a", "d", signal);
      await insert(newDevice("a"));
      const later = await store.find("a", signal);
      expect(later).toMatchObject({ name: null, last_seen: null, revision: 1, shadow: { tags: {} } });
      expect(later?.position).not.toBe(old?.position);
      expect(await store.listOnline(signal)).toEqual([]);
    });

    test("presence is recorded in batches, never goes back, and steps no revision", async () => {
      await insert(newDevice("a"));
      await insert(newDevice("b"));
      await store.recordPresence(
        [
          { id: "a", online: true, seen_at: 50 },
          { id: "b", online: true, seen_at: 60 },
          { id: "none", online: true, seen_at: 70 },
        ],
        signal,
      );
      expect((await store.listOnline(signal)).sort()).toEqual(["a", "b"]);
      await store.recordPresence([{ id: "a", online: false, seen_at: 0 }], signal);
      expect(await store.listOnline(signal)).toEqual(["b"]);
      expect(await store.find("a", signal)).toMatchObject({ last_seen: 50, revision: 1 });
    });

    test("saved views are replaced only at the revision that was read", async () => {
      const view = (name: string) => ({ id: `id-${name}`, name, query: "where=label%3Aa" });
      expect(await store.readViews(signal)).toEqual({ revision: 0, views: [] });
      const replace = (revision: number, ...names: string[]) =>
        store.replaceViews({ revision, views: names.map(view) }, signal);
      const first = await Promise.all(["a", "b", "c"].map((name) => replace(0, name)));
      expect(first.filter(Boolean)).toHaveLength(1);
      expect(await replace(0, "late")).toBe(false);
      expect(await replace(1, "x", "y")).toBe(true);
      expect(await replace(1, "late")).toBe(false);
      await store.close();
      store = await place.open();
      expect(await store.readViews(signal)).toEqual({ revision: 2, views: [view("x"), view("y")] });
    });

    test("boards are replaced only at the revision that was read", async () => {
      const board = (id: string, name = id) => ({
        id,
        name,
        revision: 1,
        created_at: "2026-01-31T12:00:00.000Z",
        changed_at: "2026-01-31T12:00:00.000Z",
        panels: [
          {
            kind: "chart" as const,
            where: { shadow: [{ pointer: "/tags/$set.a", is: "b" }] },
            topic: "temp",
            pointer: "/$a.b",
            fn: "avg" as const,
            range: "P1D",
            x: 0,
            y: 0,
            w: 4,
            h: 2,
          },
        ],
      });
      for (const id of ["a", "b"]) expect(await store.insertBoard(board(id), 3, signal)).toBe(true);
      const rest = await Promise.all(["c", "d", "e"].map((id) => store.insertBoard(board(id), 3, signal)));
      expect(rest.filter(Boolean)).toHaveLength(1);
      const changed = { ...board("a", "x"), revision: 2, panels: [] };
      const replaced = await Promise.all([1, 2, 3].map(() => store.replaceBoard(changed, signal)));
      expect(replaced.filter(Boolean)).toHaveLength(1);
      expect(await store.replaceBoard({ ...board("none"), revision: 2 }, signal)).toBe(false);
      await store.close();
      store = await place.open();
      expect(await store.findBoard("a", signal)).toEqual(changed);
      expect(await store.findBoard("b", signal)).toEqual(board("b"));
      expect((await store.listBoards(signal)).slice(0, 2)).toEqual([
        { ...changed, panels: 0 },
        { ...board("b"), panels: 1 },
      ]);
      expect(await store.removeBoard("a", signal)).toBe(true);
      expect(await store.removeBoard("a", signal)).toBe(false);
      expect(await store.insertBoard(board("f"), 3, signal)).toBe(true);
      expect((await store.listBoards(signal)).map(({ id }) => id)).toContain("f");
    });

    test("a call that was given up changes nothing", async () => {
      const gone = AbortSignal.abort(new Error("given up"));
      await expect(store.insert(newDevice("a"), null, gone)).rejects.toThrow("given up");
      await expect(store.find("a", gone)).rejects.toThrow("given up");
      expect(await store.has("a", signal)).toBe(false);
    });
  });
}
