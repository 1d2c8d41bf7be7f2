import { parseConditionText, printConditionText } from "@devmesh/contracts/model/condition-text";
import type { Device } from "@devmesh/contracts/model/device";
import type { DeviceCondition } from "@devmesh/contracts/model/device-condition";
import type { FacetName } from "@devmesh/contracts/model/device-facets";
import type { DiagnosisReport } from "@devmesh/contracts/model/diagnostics";
import type { Json, JsonObject } from "@devmesh/contracts/model/json";
import { createLogger } from "@devmesh/service-kit/logger";
import { ManualClock } from "@devmesh/service-kit/testing/manual-clock";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import fc from "fast-check";
import { Background } from "../src/background.ts";
import { createDiagnostics } from "../src/diagnostics/diagnostics.ts";
import { createFacetDevices } from "../src/registry/device-facets.ts";
import { createListDevices, createSelectDevices } from "../src/registry/device-list.ts";
import { describeDevice } from "../src/registry/device-view.ts";
import { createDeviceWalk } from "../src/registry/device-walk.ts";
import { matches } from "../src/registry/matches.ts";
import type { DeviceStore, NewDeviceDocument } from "../src/store/device-store.ts";
import { newDevice, type StoreUnderTest } from "./device-store.suite.ts";

const { signal } = new AbortController();
const hour = 3_600_000;

/** Devices that differ in all that a condition can ask for. */
const fleet = Array.from({ length: 120 }, (_, nth) => ({
  id: `d-${nth}`,
  name: nth % 5 === 0 ? null : `Pump "${nth % 7}" 100%`,
  labels: ["site-1", "site-2", "a:b"].filter((_label, at) => (nth >> at) % 2 === 1),
  version: [null, "1.0", "2.0", "none"][nth % 4] ?? null,
  mode: ["eco", 'a "b"', 3, true, undefined][nth % 5],
  isOnline: nth % 3 === 0,
  seenHoursAgo: nth % 6 === 1 ? null : nth,
  problem: [undefined, "wrong_password", "topic"][nth % 9],
}));

function documentOf({ id, name, labels, version, mode }: (typeof fleet)[number], at: number) {
  const device = newDevice(id, { name, tags: labels.length === 0 ? {} : { labels } });
  const app: JsonObject = mode === undefined ? {} : { mode: mode as Json };
  const reported: JsonObject = version === null ? {} : { ota: { fw_version: version } };
  return { ...device, created_at: at, shadow: { ...device.shadow, desired: { app }, reported } };
}

/** What a store finds by a condition is what the condition means, whatever its index decides. */
export function describeConditions(adapter: string, create: () => Promise<StoreUnderTest>): void {
  describe(`conditions over devices in ${adapter}`, () => {
    let place: StoreUnderTest;
    let store: DeviceStore;
    const clock = new ManualClock();
    const now = clock.now().getTime();
    const stopping = new AbortController();
    const background = new Background({
      clock,
      signal: stopping.signal,
      log: createLogger({ service: "test", level: "silent" }),
    });
    const diagnostics = createDiagnostics({ events: { diagnosed: async () => {} }, background, clock });
    const online = new Set(fleet.filter(({ isOnline }) => isOnline).map(({ id }) => id));
    const presence = { isOnline: (id: string) => online.has(id), lastSeen: () => null };
    let devices: Device[];
    let use: ReturnType<typeof methods>;

    function methods() {
      const options = { store, presence, diagnostics, clock };
      const walked = { ...options, walk: createDeviceWalk(options) };
      const ctx = {
        signal,
        fail(reason: string): never {
          throw new Error(reason);
        },
      } as never;
      const select = createSelectDevices(walked);
      const list = createListDevices(walked);
      const count = createFacetDevices(walked);
      return {
        async select(where: DeviceCondition, limit = 1_000) {
          const ids: string[] = [];
          for (let after: string | null | undefined; after !== null; ) {
            const page: { next: string | null; items: string[] } = await select(
              { where, limit, ...(after === undefined ? {} : { after }) },
              ctx,
            );
            ids.push(...page.items);
            after = page.next;
          }
          return ids;
        },
        selectAmong: (ids: string[], where: DeviceCondition) => select({ where, ids, limit: 1_000 }, ctx),
        list: (input: Parameters<typeof list>[0]) => list(input, ctx),
        count: (where: DeviceCondition, facets: FacetName[] = []) => count({ where, facets }, ctx),
      };
    }

    const expected = (where: DeviceCondition) =>
      devices
        .filter((device) => {
          const problems = diagnostics.problemsOf(device.id, Date.parse(device.created_at));
          return matches(where, { device, problems }, clock.now());
        })
        .map(({ id }) => id);

    const where = (text: string): DeviceCondition => {
      const parsed = parseConditionText(text);
      if ("error" in parsed) throw new Error(parsed.error.detail);
      return parsed.condition;
    };

    beforeAll(async () => {
      place = await create();
      store = await place.open();
      for (const one of fleet) await store.insert(documentOf(one, now - 50 * hour), null, signal);
      const hidden = { kind: "deleting", event_id: "e", token: "d", claimed_until: 7, step: "wipe" } as const;
      await store.insert(newDevice("d-hidden"), { ...hidden, client_ids: [] }, signal);
      const seen = fleet.flatMap(({ id, isOnline, seenHoursAgo }) =>
        seenHoursAgo === null && !isOnline
          ? []
          : [{ id, online: isOnline, seen_at: now - Math.min(seenHoursAgo ?? 0, 49) * hour }],
      );
      await store.recordPresence(seen, signal);
      const at = { timestamp: clock.now().toISOString(), address: null, client_id: null, topic: null };
      const reports = fleet.flatMap(({ id, problem }): DiagnosisReport[] => {
        if (problem === undefined) return [];
        const name = problem === "topic" ? "publication_refused" : "login_refused";
        return [{ ...at, id, name, reason: problem, detail: null, count: 1, registered: true }];
      });
      diagnostics.record([...reports, ...reports.slice(0, 1).map((one) => ({ ...one, id: "d-deleted" }))]);
      await background.settled();
      const stored = await store.findAll(
        fleet.map(({ id }) => id),
        signal,
      );
      const byId = new Map(stored.map((device) => [device.id, device]));
      devices = fleet.map(({ id }) =>
        describeDevice(byId.get(id) as NonNullable<ReturnType<typeof byId.get>>, presence),
      );
      use = methods();
    });
    afterAll(async () => {
      await background.settled();
      await store.close();
      await place.remove();
    });

    test.each([
      ["", 120],
      ["pump", 0],
      ["Pump", 96],
      ['"100%" -"Pump \\"1\\""', 82],
      ["label:site-1", 60],
      ["label:site-1 label:a:b", 30],
      ["-label:site-1 -label:site-2", 30],
      ["version:1.0", 30],
      ["version:none version:2.0", 60],
      ["-version:none", 90],
      ['version:"none"', 30],
      ["online:true", 40],
      ["silent:24h", 68],
      ["-silent:24h", 52],
      ["problem:any", 28],
      ["problem:wrong_password", 14],
      ["problem:login_refused problem:topic", 28],
      ["-problem:any label:site-1", 46],
      ["desired/app/mode:eco", 24],
      ['desired/app/mode:"a \\"b\\""', 24],
      ["desired/app/mode:3", 24],
      ['desired/app/mode:"3"', 0],
      ["delta/app/mode:true", 24],
      ["desired/app/mode:null", 24],
      ["-desired/app/mode:null -desired/app/mode:eco", 72],
      ["reported/online:true", 40],
      ["reported/online:false problem:any version:1.0", 7],
    ])("%s", async (text, devicesThatMeetIt) => {
      const condition = where(text);
      const ids = expected(condition);
      expect(ids).toHaveLength(devicesThatMeetIt);
      expect(await use.select(condition)).toEqual(ids);
      expect(await use.select(condition, 7)).toEqual(ids);
      expect((await use.count(condition)).total).toBe(ids.length);
      const listed = await use.list({ where: condition, order: "desc", limit: 5 });
      expect(listed.items.map(({ id }) => id)).toEqual(ids.toReversed().slice(0, 5));
      const all = await use.list({ where: condition, order: "-last_seen" });
      const seen = all.items.map(({ last_seen }) => last_seen ?? "");
      expect(seen).toEqual(seen.toSorted().toReversed());
      expect(all.items.map(({ id }) => id).sort()).toEqual(ids.toSorted());
    });

    const part = fc.constantFrom(
      ...["1", "Pump", "-site", "label:site-1", "-label:site-2", "label:a:b", "version:1.0", "-version:2.0"],
      ...["version:none", "online:false", "silent:30h", "-silent:10h", "problem:any", "-problem:topic"],
      ...["desired/app/mode:eco", "-desired/app/mode:3", "delta:null", "reported/ota/fw_version:2.0"],
    );

    test("each combination of terms selects and counts what meets it", async () => {
      await fc.assert(
        fc.asyncProperty(fc.uniqueArray(part, { maxLength: 4 }), async (parts) => {
          const condition = where(parts.join(" "));
          const ids = expected(condition);
          expect([printConditionText(condition), await use.select(condition)]).toEqual([
            expect.anything(),
            ids,
          ]);
          const counted = await use.count(condition, ["version", "label", "problem"]);
          expect(counted.total).toBe(ids.length);
          const ofThem = fleet.filter(({ id }) => ids.includes(id));
          for (const [facet, valuesOf] of Object.entries(facetValues)) {
            const values = new Map<string | null, number>();
            for (const value of ofThem.flatMap(valuesOf)) values.set(value, (values.get(value) ?? 0) + 1);
            const got = counted.facets[facet as FacetName] ?? [];
            expect([facet, new Map(got.map(({ value, count }) => [value, count]))]).toEqual([facet, values]);
          }
        }),
        { numRuns: 60 },
      );
    }, 120_000);

    const facetValues: Record<FacetName, (one: (typeof fleet)[number]) => readonly (string | null)[]> = {
      version: ({ version }) => [version],
      label: ({ labels }) => labels,
      problem: ({ problem }) => (problem === undefined ? [] : [problem]),
    };

    test("the most frequent values of a facet come first", async () => {
      const { facets, others } = await use.count(where("label:site-1"), ["label", "version"]);
      expect(facets.label?.[0]).toEqual({ value: "site-1", count: 60 });
      expect(facets.label?.map(({ count }) => count)).toEqual([60, 30, 30]);
      expect(others).toEqual({ label: 0, version: 0 });
      expect(facets).not.toHaveProperty("problem");
    });

    test("ids narrow a condition, and a device with a problem says so in lists", async () => {
      expect(await use.selectAmong(["d-9", "d-1", "none", "d-hidden"], {})).toEqual({
        next: null,
        items: ["d-1", "d-9"],
      });
      expect((await use.selectAmong(["d-9", "d-1"], where("problem:any"))).items).toEqual(["d-1"]);
      const { items } = await use.list({ limit: 3 });
      expect(items.map(({ problems }) => problems)).toEqual([undefined, ["wrong_password"], ["topic"]]);
    });

    test("labels, version and removal are in the index at once", async () => {
      const device: NewDeviceDocument = newDevice("late", { tags: { labels: ["new", "new"] } });
      await store.insert(device, null, signal);
      const labelled = async (label: string) => (await use.count(where(`label:${label}`))).total;
      expect([await labelled("new"), await labelled("newer")]).toEqual([1, 0]);
      expect((await use.count(where("label:new"), ["label"])).facets.label).toEqual([
        { value: "new", count: 1 },
      ]);
      await store.replace(newDevice("late", { tags: { labels: ["newer"] } }), 1, signal);
      expect([await labelled("new"), await labelled("newer")]).toEqual([0, 1]);
      const removal = {
        kind: "deleting",
        event_id: "e",
        token: "x",
        claimed_until: 7,
        step: "wipe",
      } as const;
      await store.beginOperation("late", [null], { ...removal, client_ids: [] }, signal);
      expect(await labelled("newer")).toBe(0);
      await store.remove("late", "x", signal);
      expect(await labelled("newer")).toBe(0);
    });
  });
}
