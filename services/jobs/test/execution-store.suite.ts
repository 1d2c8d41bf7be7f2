import { JobInput } from "@devmesh/contracts/model/job";
import type { JsonObject } from "@devmesh/contracts/model/json";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { nextExecution } from "../src/executions/execution-states.ts";
import { digestOfTicket, newTicket } from "../src/firmware/tickets.ts";
import { createStoredJob } from "../src/rollout/rollout.ts";
import { type ExecutionStore, retryOfCalls, type StoredExecution } from "../src/store/execution-store.ts";
import type { StoredJob } from "../src/store/job-store.ts";
import type { JobsStore } from "../src/store/jobs-store.ts";
import type { StoreUnderTest } from "./store-under-test.ts";

const { signal } = new AbortController();

let made = 0;

/** A queued call for tests that name only what they are about. */
export function newExecution(device_id: string, more: Partial<StoredExecution> = {}): StoredExecution {
  return {
    id: `01937a3c-5b1e-7000-8f00-${String(++made).padStart(12, "0")}`,
    device_id,
    job_id: null,
    place: 0,
    action: { kind: "rpc", func: "Echo", params: { $set: [1], "a.b": "Ü" }, timeout: 1_000 },
    state: "queued",
    reason: null,
    stage: null,
    percent: null,
    update: null,
    attempts: 0,
    max_attempts: 1,
    retry: retryOfCalls,
    result: null,
    error: null,
    created_at: 1_000,
    created_by: { kind: "master", key_id: "k" },
    expires_at: 100_000,
    sent_at: null,
    ended_at: null,
    due_at: null,
    not_before: 0,
    ticket: null,
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

/** A job that is not planned yet. */
function newJob({ patch = {} }: { readonly patch?: JsonObject } = {}): StoredJob {
  const body = { target: { where: {} }, action: { kind: "shadow", patch: { tags: patch } } };
  const id = `01937a3c-5b1e-7000-8f01-${String(++made).padStart(12, "0")}`;
  return createStoredJob(JobInput.parse(body), { id, at: 1_000, by: { kind: "master", key_id: "k" } });
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
    let released: ReadonlyMap<string, number> = new Map();
    const due = async (now: number, ...ids: string[]) =>
      (await store.findDue(ids, now, released, signal)).map(({ id }) => id).sort();

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

    test("no more calls are queued where many are made at the same time, and each that ends leaves room", async () => {
      const few = { most: 5, mostOfKind: 3 };
      const insertMany = async () => {
        const calls = Array.from({ length: 24 }, (_, at) =>
          newExecution("pump", {
            created_by: { kind: at % 2 === 0 ? "public_key" : "master", key_id: "k" },
          }),
        );
        const made = await Promise.all(calls.map((call) => store.insert(call, few, signal)));
        return calls.filter((_, at) => made[at]);
      };
      const first = await insertMany();
      expect(first.length).toBe(5);
      const ofKind = first.filter(({ created_by }) => created_by.kind === "master").length;
      expect([2, 3]).toContain(ofKind);
      const sent = claimed(first[0] as StoredExecution);
      await store.change([sent], signal);
      expect((await insertMany()).length).toBe(1);
      // One that is queued again counts, too.
      await store.change([{ ...sent, state: "queued", due_at: null, revision: 3 }], signal);
      await store.change([claimed(first[1] as StoredExecution)], signal);
      expect((await insertMany()).length).toBe(0);
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

    test("an execution is found by the ticket of its last attempt, also after its end", async () => {
      const execution = newExecution("pump");
      await insert(execution, newExecution("fan"), newExecution("valve"));
      const digest = digestOfTicket(newTicket());
      expect(await store.findByTicket(digest, signal)).toBeNull();
      const first = { ...claimed(execution), ticket: digest };
      await store.change([first], signal);
      expect(await store.findByTicket(digest, signal)).toEqual(first);
      const ended = { ...first, state: "failed" as const, due_at: null, ended_at: 3_000, revision: 3 };
      await store.change([ended], signal);
      expect(await store.findByTicket(digest, signal)).toEqual(ended);
      const other = digestOfTicket(newTicket());
      await store.change([{ ...ended, ticket: other, revision: 4 }], signal);
      expect(await store.findByTicket(digest, signal)).toBeNull();
      expect((await store.findByTicket(other, signal))?.id).toBe(execution.id);
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

    describe("of jobs", () => {
      const ofJob = (device: string, place: number, more: Partial<StoredExecution> = {}) =>
        newExecution(device, { job_id: "job", place, ...more });
      const shadow = { kind: "shadow", patch: { tags: {} }, wait_for_report: true, timeout: "PT1M" } as const;
      const places = async (more: Partial<Parameters<ExecutionStore["listOfJob"]>[0]> = {}) =>
        (await store.listOfJob({ job_id: "job", limit: 10, ...more }, signal)).map(({ place }) => place);

      test("a page that is stored twice changes nothing", async () => {
        const page = [ofJob("a", 0.5), ofJob("b", 0.25)];
        expect(await store.insertOfJob(page, signal)).toEqual(new Set(page.map(({ id }) => id)));
        const again = [ofJob("a", 0.5), ofJob("b", 0.25), ofJob("c", 0.75)];
        expect(await store.insertOfJob(again, signal)).toEqual(new Set([again[2]?.id]));
        expect(await store.findOfJob("job", ["a", "c", "none"], signal)).toHaveLength(2);
        expect(await store.countStates("job", signal)).toMatchObject({ queued: 3, sent: 0 });
        await store.insertOfJob([newExecution("a", { job_id: "other", place: 0.5 })], signal);
        expect(await store.countStates("job", signal)).toMatchObject({ queued: 3 });
      });

      test("executions are listed in the order of the rollout, by state and between places", async () => {
        const all = [0.75, 0.25, 0.5, 1].map((place) => ofJob(`d${place}`, place));
        await store.insertOfJob(all, signal);
        await store.change([claimed(all[1] as StoredExecution)], signal);
        expect(await places()).toEqual([0.25, 0.5, 0.75, 1]);
        expect(await places({ after: 0.25, upTo: 0.75 })).toEqual([0.5, 0.75]);
        expect(await places({ state: "queued", limit: 2 })).toEqual([0.5, 0.75]);
        expect(await places({ state: "sent" })).toEqual([0.25]);
        expect(await store.placeBeyond("job", -1, 2, signal)).toEqual({ place: 0.5, count: 2 });
        expect(await store.placeBeyond("job", 0.5, 5, signal)).toEqual({ place: 1, count: 2 });
        expect(await store.placeBeyond("job", 1, 5, signal)).toEqual({ place: 1, count: 0 });
      });

      test("an execution is due up to the place that its job has released, and holds up no other", async () => {
        const [first, second] = [ofJob("pump", 0.5), newExecution("pump")];
        await store.insertOfJob([first], signal);
        await insert(second);
        expect(await due(20_000, "pump")).toEqual([second.id]);
        released = new Map([["job", 0.4]]);
        expect(await due(20_000, "pump")).toEqual([second.id]);
        released = new Map([["job", 0.5]]);
        expect(await due(20_000, "pump")).toEqual([first.id]);
        released = new Map();
      });

      test("a change of the shadow is sent beside a call, and is among what its device has open", async () => {
        const call = newExecution("pump");
        const change = ofJob("pump", 0.5, { action: shadow });
        await insert(call);
        await store.insertOfJob([change, ofJob("pump-1", 0.6, { action: shadow })], signal);
        const both = [claimed(call), claimed(change)];
        expect(await store.change(both, signal)).toEqual(new Set([call.id, change.id]));
        const open = (await store.listOpen("pump", 10, signal)).map(({ id }) => id);
        expect(open.sort()).toEqual([call.id, change.id].sort());
      });

      test("they do not count as waiting calls, and go with their job alone", async () => {
        await store.insertOfJob([ofJob("pump", 0.5)], signal);
        expect(await store.insert(newExecution("pump"), { most: 1, mostOfKind: 1 }, signal)).toBe(true);
        const ended = ofJob("fan", 0.6, { state: "failed", ended_at: 1_000 });
        await store.insertOfJob([ended], signal);
        expect(await store.removeEnded(5_000, 10, signal)).toBe(0);
        const job = newJob();
        await store.insertJob(job, { open: 10, continuous: 10 }, signal);
        await store.changeJob({ ...job, settled: true, state: "done", ended_at: 1_000, revision: 2 }, signal);
        expect(await store.listOldJobs(1_000, 10, signal)).toEqual([]);
        expect(await store.listOldJobs(1_001, 10, signal)).toEqual([job.id]);
        await store.insertOfJob([newExecution("pump", { job_id: job.id })], signal);
        expect([await store.removeJob(job.id, 1, signal), await store.removeJob(job.id, 1, signal)]).toEqual([
          false,
          true,
        ]);
        expect(await store.findJob(job.id, signal)).toBeNull();
      });
    });

    describe("jobs", () => {
      const most = { open: 3, continuous: 1 };

      test("a job is found as it was stored, and changed by its revision", async () => {
        const job = newJob({ patch: { $set: { "a.b": 1 } } });
        expect(await store.insertJob(job, most, signal)).toBe(true);
        await opened.close();
        await open();
        expect(await store.findJob(job.id, signal)).toEqual(job);
        expect(await store.findJob("none", signal)).toBeNull();
        const paused = { ...job, state: "paused" as const, revision: 2 };
        const tries = Array.from({ length: 8 }, () => store.changeJob(paused, signal));
        expect((await Promise.all(tries)).filter(Boolean)).toHaveLength(1);
        expect(await store.findJob(job.id, signal)).toEqual(paused);
      });

      test("so many are open, and so many of them continuous", async () => {
        const jobs = [true, true, false, false, false].map((continuous) => ({ ...newJob(), continuous }));
        const stored = [];
        for (const job of jobs) stored.push(await store.insertJob(job, most, signal));
        expect(stored).toEqual([true, false, true, true, false]);
        const [first] = jobs as [StoredJob];
        await store.changeJob({ ...first, settled: true, ended_at: 5, revision: 2 }, signal);
        expect(await store.insertJob(newJob(), most, signal)).toBe(true);
        expect((await store.listOpenJobs(signal)).map(({ id }) => id)).not.toContain(first.id);
      });

      test("no more are open, or continuous, where many are created at the same time", async () => {
        const insertMany = async () => {
          const jobs = Array.from({ length: 20 }, (_, at) => ({ ...newJob(), continuous: at % 2 === 0 }));
          const stored = await Promise.all(jobs.map((job) => store.insertJob(job, most, signal)));
          return jobs.filter((_, at) => stored[at]);
        };
        const first = await insertMany();
        expect(first.length).toBe(3);
        expect(first.filter(({ continuous }) => continuous).length).toBeLessThanOrEqual(1);
        for (const job of first) {
          const settled = { ...job, settled: true, ended_at: 5, revision: 2 };
          // The second one changes nothing, and gives no place back.
          expect(await store.changeJob(settled, signal)).toBe(true);
          expect(await store.changeJob(settled, signal)).toBe(false);
        }
        const second = await insertMany();
        expect(second.length).toBe(3);
        expect(second.filter(({ continuous }) => continuous).length).toBeLessThanOrEqual(1);
        await store.correctJobCounts(signal);
      });

      test("they are listed newest first, by state and in pages", async () => {
        const jobs = [newJob(), newJob(), newJob()];
        for (const job of jobs) await store.insertJob(job, most, signal);
        const [one, two, three] = jobs.map(({ id }) => id);
        const list = async (more: object = {}) =>
          (await store.listJobs({ limit: 10, ...more }, signal)).map(({ id }) => id);
        expect(await list()).toEqual([three, two, one]);
        expect(await list({ after: three, limit: 1 })).toEqual([two]);
        await store.changeJob({ ...(jobs[1] as StoredJob), state: "running", revision: 2 }, signal);
        expect(await list({ state: "running" })).toEqual([two]);
        expect((await store.listOpenJobs(signal)).map(({ id }) => id)).toEqual([one, two, three]);
      });
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
  });
}
