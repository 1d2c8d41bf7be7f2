import { randomUUID } from "node:crypto";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { nextExecution } from "../src/executions/execution-states.ts";
import type { ExecutionStore, StoredExecution } from "../src/store/execution-store.ts";
import type { JobsStore } from "../src/store/jobs-store.ts";
import type { StoreUnderTest } from "./store-under-test.ts";

const { signal } = new AbortController();

let made = 0;

/** A queued call for tests that name only what they are about. */
export function newExecution(device_id: string, more: Partial<StoredExecution> = {}): StoredExecution {
  return {
    id: `01937a3c-5b1e-7000-8f00-${String(++made).padStart(12, "0")}`,
    device_id,
    action: { kind: "rpc", func: "Echo", params: { $set: [1], "a.b": "Ü" }, timeout: 1_000 },
    state: "queued",
    reason: null,
    attempts: 0,
    max_attempts: 1,
    result: null,
    error: null,
    created_at: 1_000,
    created_by: { kind: "master", key_id: "k" },
    expires_at: 100_000,
    sent_at: null,
    ended_at: null,
    due_at: null,
    not_before: 0,
    revision: 1,
    ...more,
  };
}

/** The execution while an attempt is under way. */
export function claimed(execution: StoredExecution, dueAt = 5_000): StoredExecution {
  const next = nextExecution(execution, { kind: "claimed", at: 2_000, dueAt });
  if (next === null) throw new Error("it cannot be claimed");
  return next;
}

const bounds = { most: 1_000, mostOfKind: 1_000 };

/** What every adapter of the port must do. */
export function describeExecutionStore(adapter: string, create: () => Promise<StoreUnderTest>): void {
  describe(`executions in ${adapter}`, () => {
    let place: StoreUnderTest;
    let opened: JobsStore;
    let store: ExecutionStore;
    const open = async () => {
      opened = await place.open();
      store = opened.executions;
    };
    beforeEach(async () => {
      place = await create();
      await open();
    });
    afterEach(async () => {
      await opened.close();
      await place.remove();
    });

    const insert = async (...given: StoredExecution[]) => {
      for (const one of given) expect(await store.insert(one, bounds, signal)).toBe(true);
    };
    const stored = async (id: string) => (await store.find(id, signal))?.execution;
    const due = async (now: number, ...ids: string[]) =>
      (await store.findDue(ids, now, signal)).map(({ id }) => id).sort();

    test("an execution is found as it was stored, also after a reopening", async () => {
      const execution = newExecution("pump");
      await insert(execution);
      await opened.close();
      await open();
      expect(await store.find(execution.id, signal)).toEqual({ execution, listed: true });
      expect(await store.find("none", signal)).toBeNull();
    });

    test("a device has a bounded number of queued executions, and of those by one kind of key", async () => {
      const few = { most: 3, mostOfKind: 2 };
      const by = (kind: "master" | "public_key") =>
        store.insert(newExecution("pump", { created_by: { kind, key_id: "k" } }), few, signal);
      expect([await by("public_key"), await by("public_key"), await by("public_key")]).toEqual([
        true,
        true,
        false,
      ]);
      expect([await by("master"), await by("master")]).toEqual([true, false]);
      expect(await store.insert(newExecution("other"), few, signal)).toBe(true);
    });

    test("a claim is won once by eight at a time, and a change of another revision changes nothing", async () => {
      const execution = newExecution("pump");
      await insert(execution);
      const tries = Array.from({ length: 8 }, () => store.change([claimed(execution)], signal));
      const wins = (await Promise.all(tries)).filter((won) => won.has(execution.id));
      expect(wins).toHaveLength(1);
      const stale = { ...execution, state: "cancelled" as const, ended_at: 3_000, revision: 2 };
      expect(await store.change([stale], signal)).toEqual(new Set());
      expect(await stored(execution.id)).toEqual(claimed(execution));
    });

    test("a second execution of a device is not sent beside the first, whatever else is changed with it", async () => {
      const [first, second, other] = [newExecution("pump"), newExecution("pump"), newExecution("fan")];
      await insert(first, second, other);
      const both = await store.change([claimed(first), claimed(second), claimed(other)], signal);
      expect([both.has(other.id), both.has(first.id) !== both.has(second.id)]).toEqual([true, true]);
      const [sent, waiting] = both.has(first.id) ? [first, second] : [second, first];
      expect((await stored(waiting.id))?.state).toBe("queued");
      const done = nextExecution(claimed(sent), { kind: "unanswered", at: 3_000 });
      expect(await store.change(done === null ? [] : [done], signal)).toEqual(new Set([sent.id]));
      expect(await store.change([claimed(waiting)], signal)).toEqual(new Set([waiting.id]));
    });

    test("the oldest queued execution of each device is due, unless it waits for a retry or its time is over", async () => {
      const retried = newExecution("pump", { not_before: 50_000 });
      const expired = newExecution("pump", { expires_at: 10_000 });
      const [older, newer, ofFan] = [newExecution("pump"), newExecution("pump"), newExecution("fan")];
      await insert(retried, expired, older, newer, ofFan);
      expect(await due(20_000, "pump", "fan", "none")).toEqual([older.id, ofFan.id].sort());
      expect(await due(50_000, "pump")).toEqual([retried.id]);
      await store.change([claimed(ofFan)], signal);
      expect(await due(20_000, "fan")).toEqual([]);
    });

    test("devices that wait are walked in order", async () => {
      await insert(...["c", "a", "b", "a"].map((id) => newExecution(id)), newExecution("z"));
      expect(await store.listWaiting("", 3, signal)).toEqual(["a", "a", "b"]);
      expect(await store.listWaiting("b", 3, signal)).toEqual(["c", "z"]);
    });

    test("what is past its time is listed: sent at `due_at`, queued at `expires_at`", async () => {
      const [sent, queued] = [newExecution("pump"), newExecution("fan", { expires_at: 7_000 })];
      await insert(sent, queued);
      await store.change([claimed(sent, 6_000)], signal);
      const overdue = async (now: number) =>
        (await store.listOverdue(now, 10, signal)).map(({ id }) => id).sort();
      expect(await overdue(5_999)).toEqual([]);
      expect(await overdue(6_000)).toEqual([sent.id]);
      expect(await overdue(7_000)).toEqual([sent.id, queued.id].sort());
      expect(await store.countOpen(signal)).toEqual({ queued: 1, sent: 1 });
    });

    test("a device's executions are listed newest first in pages, until it is deleted", async () => {
      const all = [1, 2, 3].map(() => newExecution("pump"));
      await insert(...all, newExecution("pump-2"));
      const [first, second, third] = all as [StoredExecution, StoredExecution, StoredExecution];
      await store.change([claimed(second)], signal);
      const list = async (more: { state?: "sent"; after?: string; limit?: number } = {}) =>
        (await store.list({ device_id: "pump", limit: 10, ...more }, signal)).map(({ id }) => id);
      expect(await list()).toEqual([third.id, second.id, first.id]);
      expect(await list({ limit: 1, after: third.id })).toEqual([second.id]);
      expect(await list({ state: "sent" })).toEqual([second.id]);
      expect((await store.listOpen("pump", 10, signal)).map(({ id }) => id).sort()).toEqual(
        all.map(({ id }) => id).sort(),
      );
      await store.unlist("pump", signal);
      expect(await list()).toEqual([]);
      expect((await store.find(first.id, signal))?.listed).toBe(false);
    });

    test("ended executions are removed by their age", async () => {
      const [old, young, open] = [newExecution("a"), newExecution("b"), newExecution("c")];
      await insert(old, young, open);
      const at = (execution: StoredExecution, ended: number) =>
        nextExecution(execution, { kind: "cancelled", at: ended, reason: "by_request" }) ?? execution;
      await store.change([at(old, 3_000), at(young, 4_000)], signal);
      expect(await store.removeEnded(4_000, 10, signal)).toBe(1);
      expect([await stored(old.id), (await stored(young.id))?.id]).toEqual([undefined, young.id]);
    });

    test("the sender's lease is renewed by its holder and free once it is released", async () => {
      const [one, other] = [randomUUID(), randomUUID()];
      expect(await store.lease(one, 60_000, signal)).toBe(true);
      expect(await store.lease(one, 60_000, signal)).toBe(true);
      await store.release(other, signal);
      await store.release(one, signal);
      expect(await store.lease(other, 60_000, signal)).toBe(true);
    });
  });
}
