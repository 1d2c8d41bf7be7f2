import type { devices as contract } from "@devmesh/contracts/devices";
import type { Device } from "@devmesh/contracts/model/device";
import type { DeviceCondition } from "@devmesh/contracts/model/device-condition";
import { lengthOf } from "@devmesh/contracts/model/duration";
import { isJsonObject, type Json, type JsonObject } from "@devmesh/contracts/model/json";
import { membersOf } from "@devmesh/contracts/model/json-pointer";
import { isReason } from "@devmesh/service-kit/errors";
import type { CallContext, OpenCallContext } from "@devmesh/service-kit/rpc/context";
import type { Client } from "@devmesh/service-kit/rpc/implementation";
import { pairOf } from "../store/alert-store.ts";
import type { AlertChanges, Round, Sighting } from "./alert-changes.ts";
import type { RuleOf } from "./rule-book.ts";
import { holdsFor, valueAt } from "./value-condition.ts";

/** Devices of a page, and the pages of one round, so that other conditions are looked at, too. */
const pageSize = 250;
const maxPages = 8;

/** How often all devices are looked at, in milliseconds. */
const checkEveryMs = 600_000;

/** Changes that wait to be looked at; with more, all devices are looked at. */
const maxWaiting = 50_000;

/** The most pointers of a condition over devices. */
const maxPointers = 10;

type ShadowRule = RuleOf<"shadow"> | RuleOf<"not_taken">;
type ShadowDevices = Pick<Client<typeof contract>, "listDevices" | "readDevice">;

export interface ShadowRulesOptions {
  readonly devices: ShadowDevices;
  readonly changes: AlertChanges;
  /** Those of these devices that a rule is for. */
  readonly select: (where: DeviceCondition, ids: readonly string[]) => Promise<Set<string>>;
  readonly newCall: () => OpenCallContext;
  readonly now: () => number;
}

type DeviceSighting = Sighting & { readonly device_id: string };

/** What a device shows of a rule on its shadow; null where the values cannot be compared. */
export function shadowSighting({ when, forMs }: ShadowRule, { id, shadow }: Device): DeviceSighting | null {
  const { delta } = shadow.state;
  const seen = { device_id: id, at: shadow.timestamp };
  if (when.kind === "not_taken") {
    const at = delta === undefined ? shadow.timestamp : (deltaSince(delta, shadow) ?? shadow.timestamp);
    return { ...seen, at, holds: delta !== undefined, value: null, holdMs: lengthOf(when.longer_than) };
  }
  const value = valueAt({ state: shadow.state, tags: shadow.tags } as Json, membersOf(when.pointer));
  const holds = value === undefined ? false : holdsFor(when, value, false);
  return holds === null ? null : { ...seen, holds, value: value ?? null, holdMs: forMs };
}

/** Since when a delta is certainly not empty: the first of its members has differed since both were last written. */
function deltaSince(delta: JsonObject, { metadata }: Pick<Device["shadow"], "metadata">): number | null {
  const differs = (name: string, part: Json, desired?: Json, reported?: Json): number[] => {
    const [wanted, is] = [desired, reported].map((times) => (isJsonObject(times) ? times[name] : undefined));
    if (isJsonObject(part))
      return Object.entries(part).flatMap(([below, value]) => differs(below, value, wanted, is));
    const times = [wanted, is].flatMap((time) =>
      isJsonObject(time) && typeof time.timestamp === "number" ? [time.timestamp] : [],
    );
    return times.length === 0 ? [] : [Math.max(...times)];
  };
  const all = Object.entries(delta).flatMap(([name, part]) =>
    differs(name, part, metadata.desired, metadata.reported),
  );
  return all.length === 0 ? null : Math.min(...all);
}

/** The devices of a rule that can meet it, by page. */
export async function listOfRule(
  devices: Pick<ShadowDevices, "listDevices">,
  { where, when }: ShadowRule,
  after: string | null,
  call: CallContext,
): Promise<{ readonly items: readonly Device[]; readonly next: string | null }> {
  const pointer = when.kind === "shadow" ? when.pointer : "/state/delta";
  const shadow = where.shadow ?? [];
  const narrowed =
    shadow.length < maxPointers ? { ...where, shadow: [...shadow, { pointer, is_not: null }] } : where;
  const page = { limit: pageSize, ...(after !== null && { after }) };
  return await devices.listDevices({ where: narrowed, ...page }, call);
}

/** A look at all devices of a rule. */
interface Check {
  readonly rule: ShadowRule;
  after: string | null;
  /** Devices for which it holds. */
  readonly holding: Set<string>;
}

/** Looks at shadows when they change, and at all of them at the start, after a gap and every 10 minutes. */
export function createShadowRules({ devices, changes, select, newCall, now }: ShadowRulesOptions) {
  let rules: readonly ShadowRule[] = [];
  let isOpen: (pair: { readonly rule_id: string; readonly device_id: string }) => boolean = () => false;
  /** The last sighting of each rule and device. */
  const waiting = new Map<string, { readonly rule: ShadowRule; readonly seen: DeviceSighting }>();
  let checks: Check[] = [];
  let checked = "";
  let nextCheckMs = 0;

  function checkAll(): void {
    waiting.clear();
    checks = [];
    nextCheckMs = 0;
  }

  async function seeWaiting(round: Round): Promise<void> {
    const all = [...waiting.values()];
    waiting.clear();
    for (const [rule, some] of Map.groupBy(all, ({ rule }) => rule))
      await seeOf(
        round,
        rule,
        some.map(({ seen }) => seen),
      );
  }

  /** Fires for devices that the rule is for, and clears. */
  async function seeOf(round: Round, rule: ShadowRule, some: readonly DeviceSighting[]): Promise<void> {
    const isNew = ({ device_id }: DeviceSighting) => !round.open.has({ rule_id: rule.id, device_id });
    const begins = some.filter((seen) => seen.holds && isNew(seen)).map(({ device_id }) => device_id);
    const found = await select(rule.where, begins);
    await changes.see(
      round,
      rule,
      some.filter((seen) => !isNew(seen) || found.has(seen.device_id)),
    );
  }

  async function checkPage(round: Round, check: Check): Promise<boolean> {
    using call = newCall();
    const { items, next } = await listOfRule(devices, check.rule, check.after, call);
    const holding = items
      .flatMap((device) => shadowSighting(check.rule, device) ?? [])
      .filter(({ holds }) => holds);
    for (const { device_id } of holding) check.holding.add(device_id);
    await changes.see(round, check.rule, holding);
    check.after = next;
    return next === null;
  }

  /** Looks again at devices whose alert is open and that no page had. */
  async function endCheck(round: Round, { rule, holding }: Check): Promise<void> {
    for (const { device_id } of round.open.ofRule(rule.id)) {
      if (device_id === null || holding.has(device_id)) continue;
      using call = newCall();
      const { device } = await devices
        .readDevice({ id: device_id, principal: { kind: "master" } }, call)
        .catch((error: unknown) => {
          if (isReason(error, "device_not_found")) return { device: null };
          throw error;
        });
      const seen = device === null ? null : shadowSighting(rule, device as unknown as Device);
      if (seen !== null) await changes.see(round, rule, [seen]);
    }
  }

  return {
    /** Devices may have changed unseen. */
    checkAll,

    /** A device as it is now. */
    take(device: Device): void {
      for (const rule of rules) {
        const seen = shadowSighting(rule, device);
        if (seen === null) continue;
        const pair = { rule_id: rule.id, device_id: device.id };
        const key = pairOf(pair);
        if (seen.holds || isOpen(pair) || waiting.has(key)) waiting.set(key, { rule, seen });
      }
      if (waiting.size > maxWaiting) checkAll();
    },

    async evaluate(round: Round): Promise<void> {
      rules = round.book.shadow;
      isOpen = (pair) => round.open.has(pair);
      const key = JSON.stringify(rules.map(({ id, epoch }) => [id, epoch]));
      if (key !== checked) checkAll();
      checked = key;
      await seeWaiting(round);
      if (checks.length === 0 && now() >= nextCheckMs) {
        checks = rules.map((rule) => ({ rule, after: null, holding: new Set() }));
        nextCheckMs = now() + checkEveryMs;
      }
      try {
        for (let pages = 0; pages < maxPages; pages++) {
          const [check] = checks;
          if (check === undefined) return;
          if (!(await checkPage(round, check))) continue;
          await endCheck(round, check);
          checks.shift();
        }
      } catch (error) {
        // It goes on in a later round.
        if (!isReason(error, "too_many_scans")) throw error;
      }
    },
  };
}
