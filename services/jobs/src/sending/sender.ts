import type { devices } from "@devmesh/contracts/devices";
import type { Action } from "@devmesh/contracts/model/action";
import type { rpcBridge } from "@devmesh/contracts/rpc-bridge";
import type { Clock } from "@devmesh/service-kit/clock";
import { isReason } from "@devmesh/service-kit/errors";
import type { Logger } from "@devmesh/service-kit/logger";
import { retry } from "@devmesh/service-kit/retry";
import { createCallContext } from "@devmesh/service-kit/rpc/context";
import type { Client } from "@devmesh/service-kit/rpc/implementation";
import { RunningTasks } from "@devmesh/service-kit/running-tasks";
import { TokenBuckets } from "@devmesh/service-kit/token-buckets";
import type { ExecutionEvents } from "../executions/execution-events.ts";
import { type ExecutionEvent, nextExecution } from "../executions/execution-states.ts";
import type { JobsMetrics } from "../metrics.ts";
import { type ExecutionStore, laneOf, type StoredExecution } from "../store/execution-store.ts";
import { type CallAnswer, createDeviceCalls } from "./device-calls.ts";
import { createUnsubscribedDevices } from "./unsubscribed-devices.ts";

/** Devices of one look-up, and for how long they gather, in milliseconds. */
const gatheredDevices = 1_000;
const gatherMs = 50;

/** Executions of one commit, and for how long outcomes gather, in milliseconds. */
const batchSize = 200;
const settleMs = 100;

/** Attempts that begin in a second. */
const sendsPerSecond = 1_000;

/** What a `busy` bridge leaves of the attempts at a time at least, and what each second adds. */
const leastInFlight = 10;
const addedEachSecond = 50;

/** Milliseconds beyond its timeout after which an attempt is unanswered in any case. */
const crashMarginMs = 10_000;

/**
 * Longest time from a claim to the frame, in milliseconds: the id of a device that is deleted meanwhile may belong to
 * another one six seconds later (ADR 14).
 */
const longestClaimMs = 1_000;

/** How long the check of an ACL may take, in milliseconds. */
const authorizeMs = 2_000;

type RpcAction = Extract<Action, { readonly kind: "rpc" }>;

/** What jobs let go. */
export interface JobGate {
  /** Up to what place running jobs let their calls go. */
  released(): ReadonlyMap<string, number>;
  /** Those that may be sent now, since a job bounds what is under way; the job wakes the other devices later. */
  admit(due: readonly StoredExecution[]): StoredExecution[];
}

export interface CallSenderOptions {
  readonly store: Pick<ExecutionStore, "findDue" | "change">;
  readonly gate: JobGate;
  readonly bridge: Pick<Client<typeof rpcBridge>, "attemptCall">;
  readonly devices: Pick<Client<typeof devices>, "authorize">;
  readonly events: Pick<ExecutionEvents, "changed">;
  /** Begins updates of firmware, of devices that may listen. */
  readonly beginUpdates: (due: readonly StoredExecution[]) => Promise<void>;
  /** Whether this replica may begin attempts. */
  readonly mayBegin: () => boolean;
  readonly maxInFlight: number;
  readonly metrics: JobsMetrics;
  readonly clock: Clock;
  readonly log: Logger;
  /** Ends everything, also what waits for the store. */
  readonly signal: AbortSignal;
}

/** An execution, and what happened to it. */
type Happened = readonly [StoredExecution, ExecutionEvent];

/** Sends what is due to devices that may listen. */
export interface CallSender {
  /** Devices that may listen now, or whose last execution has ended. */
  wake(deviceIds: readonly string[]): void;
  /** Devices that have just connected: they subscribe soon. */
  connected(deviceId: string): void;
  /** Whether a device that is connected may be tried now. */
  mayTry(deviceId: string): boolean;
  /** A device was sent a frame, or nobody listened. */
  tried(deviceId: string, isListening: boolean): void;
  /**
   * Stores what happened to executions, and wakes devices that are free. Resolves, when it is stored, with each
   * execution as it is then; null for one that has changed otherwise, or whose state does not allow it.
   */
  settle(happened: readonly Happened[]): Promise<readonly (StoredExecution | null)[]>;
  readonly inFlight: number;
  /** Begins nothing more, and resolves when all attempts have ended and are stored. */
  stop(): Promise<void>;
}

/** Claims executions, calls devices through the bridge and stores what became of it. */
export function createCallSender(options: CallSenderOptions): CallSender {
  const { store, gate, bridge, devices, events, beginUpdates, mayBegin, metrics, clock, log, signal } =
    options;
  const call = createDeviceCalls({ bridge, quiet: false, clock, signal });
  const running = new RunningTasks();
  const rate = new TokenBuckets({ size: sendsPerSecond, refill: sendsPerSecond, maxBuckets: 1 });
  const woken = new Set<string>();
  const unsubscribed = createUnsubscribedDevices(clock, (id) => wake([id]));
  /** When devices connected, for the time that they wait. */
  const connectedAtMs = new Map<string, number>();
  let inFlight = 0;
  let mostInFlight = options.maxInFlight;
  let raisedAtMs = clock.monotonicMs();
  let isWorking = false;
  let isStopping = false;
  let isScheduled = false;
  let ended: {
    readonly execution: StoredExecution;
    readonly event: ExecutionEvent;
    readonly stored: (after: StoredExecution | null) => void;
  }[] = [];

  function wake(deviceIds: readonly string[]): void {
    if (isStopping) return;
    for (const id of deviceIds) woken.add(id);
    if (woken.size >= gatheredDevices) work();
    else scheduleWork(gatherMs);
  }

  function scheduleWork(ms: number): void {
    if (isScheduled || isStopping) return;
    isScheduled = true;
    clock.schedule(ms, () => {
      isScheduled = false;
      work();
    });
  }

  /** How many attempts may begin now. */
  function free(): number {
    const nowMs = clock.monotonicMs();
    const seconds = Math.floor((nowMs - raisedAtMs) / 1_000);
    if (seconds > 0) {
      mostInFlight = Math.min(options.maxInFlight, mostInFlight + seconds * addedEachSecond);
      raisedAtMs += seconds * 1_000;
    }
    return Math.min(mostInFlight - inFlight, Math.floor(rate.tokens("all", nowMs)));
  }

  function work(): void {
    if (isWorking || isStopping || !mayBegin()) return;
    isWorking = true;
    running.add(
      sendWoken()
        .catch((err: unknown) => {
          if (!signal.aborted) log.warn({ err }, "what is due could not be sent; the sweep tries again");
        })
        .finally(() => {
          isWorking = false;
          if (woken.size > 0) scheduleWork(gatherMs);
        }),
    );
  }

  async function sendWoken(): Promise<void> {
    for (let most = free(); most > 0 && woken.size > 0 && mayBegin() && !isStopping; most = free()) {
      const ids = [...woken].slice(0, Math.min(most, batchSize));
      for (const id of ids) woken.delete(id);
      const due = await store.findDue(ids, now(), gate.released(), signal);
      const waiting = new Set(due.map(({ device_id }) => device_id));
      for (const id of ids) if (!waiting.has(id)) forget(id);
      const permitted = await onlyPermitted(due);
      const admitted = gate.admit(permitted);
      await claim(admitted);
      await beginUpdates(admitted.filter(({ action }) => action.kind === "firmware"));
    }
  }

  function forget(deviceId: string): void {
    unsubscribed.forget(deviceId);
    connectedAtMs.delete(deviceId);
  }

  /** A public key may call only what the device's ACL lists when the call is sent. */
  async function onlyPermitted(due: readonly StoredExecution[]): Promise<StoredExecution[]> {
    const checked = await Promise.all(
      due.map(async (execution) => {
        const { device_id: id, action, created_by } = execution;
        if (created_by.kind !== "public_key" || action.kind !== "rpc") return execution;
        using call = createCallContext({ timeoutMs: authorizeMs, signal, clock });
        try {
          await devices.authorize({ id, action: { kind: "rpc", func: action.func } }, call);
          return execution;
        } catch (error) {
          // A device that is deleted drops its executions itself.
          if (isReason(error, "rpc_not_permitted"))
            void settle([[execution, { kind: "refused", at: now(), reason: "rpc_not_permitted" }]]);
          return null;
        }
      }),
    );
    return checked.filter((execution) => execution !== null);
  }

  async function claim(due: readonly StoredExecution[]): Promise<void> {
    const claimedMs = clock.monotonicMs();
    const at = now();
    const claims = due.flatMap((before) => {
      const { action } = before;
      if (action.kind !== "rpc") return [];
      const dueAt = at + action.timeout + crashMarginMs;
      const claimed = nextExecution(before, { kind: "claimed", at, dueAt });
      return claimed === null ? [] : [{ before, claimed, action }];
    });
    if (claims.length === 0) return;
    const won = await store.change(
      claims.map(({ claimed }) => claimed),
      signal,
    );
    for (const { before, claimed, action } of claims) {
      if (!won.has(claimed.id)) continue;
      events.changed(claimed, before);
      running.add(attempt(claimed, action, claimedMs));
    }
  }

  async function attempt(execution: StoredExecution, action: RpcAction, claimedMs: number): Promise<void> {
    inFlight++;
    rate.take("all", clock.monotonicMs());
    const { device_id } = execution;
    const connectedMs = connectedAtMs.get(device_id);
    let answer: CallAnswer = { outcome: "undelivered", sent: false };
    if (clock.monotonicMs() - claimedMs < longestClaimMs && mayBegin())
      answer = await call(device_id, action.func, action.params, action.timeout, execution.from_webhook);
    const { outcome } = answer;
    if (answer.sent && outcome !== "unknown" && connectedMs !== undefined)
      metrics.wakeSeconds.observe((claimedMs - connectedMs) / 1_000);
    inFlight--;
    metrics.sends.inc({ outcome });
    if (outcome === "busy" || outcome === "undelivered" || outcome === "no_broker") {
      mostInFlight = Math.max(leastInFlight, Math.floor(mostInFlight / 2));
      raisedAtMs = clock.monotonicMs();
    }
    tried(device_id, outcome !== "nobody_listens");
    await settle([[execution, eventOf(answer, now())]]);
  }

  function tried(deviceId: string, isListening: boolean): void {
    if (isListening) forget(deviceId);
    else unsubscribed.nobodyListens(deviceId);
  }

  function settle(happened: readonly Happened[]): Promise<readonly (StoredExecution | null)[]> {
    const all = happened.map(
      ([execution, event]) =>
        new Promise<StoredExecution | null>((stored) => {
          if (ended.length === 0) clock.schedule(settleMs, () => running.add(store_()));
          ended.push({ execution, event, stored });
          if (ended.length >= batchSize) running.add(store_());
        }),
    );
    return Promise.all(all);
  }

  /** Stores the gathered outcomes, however long the store is away. */
  async function store_(): Promise<void> {
    const batch = ended;
    ended = [];
    const changes = batch.flatMap(({ execution: before, event }) => {
      const next = nextExecution(before, event);
      return next === null ? [] : [{ before, next }];
    });
    const all = changes.map(({ next }) => next);
    const stored = await retry(() => store.change(all, signal), {
      firstMs: 100,
      longestMs: 5_000,
      isRetried: (err) => {
        log.warn({ err }, "outcomes of executions wait for the store");
        return true;
      },
      clock,
      signal,
    }).catch(() => new Set<string>());
    const after = new Map<StoredExecution, StoredExecution>();
    for (const { before, next } of changes) {
      if (!stored.has(next.id)) continue;
      after.set(before, next);
      if (next.ended_at !== null) {
        const { action, state, reason } = next;
        metrics.ended.inc({ kind: action.kind, state, reason: reason ?? "" });
      }
      events.changed(next, before);
    }
    for (const { execution, stored: resolve } of batch) resolve(after.get(execution) ?? null);
    // The next one of a device may begin; one that nobody listens to has its own time.
    const free = batch.filter(({ execution, event }) => {
      const lane = laneOf(after.get(execution) ?? execution);
      return event.kind !== "put_back" && (lane === null || lane !== laneOf(execution));
    });
    wake(free.map(({ execution }) => execution.device_id));
  }

  const now = () => clock.now().getTime();

  return {
    wake,
    connected(deviceId) {
      if (isStopping) return;
      connectedAtMs.set(deviceId, clock.monotonicMs());
      unsubscribed.connected(deviceId);
    },
    mayTry: unsubscribed.mayTry,
    tried,
    settle,
    get inFlight() {
      return inFlight;
    },
    async stop() {
      isStopping = true;
      unsubscribed.stop();
      woken.clear();
      await running.settled();
    },
  };
}

/** What became of an execution by one attempt. */
function eventOf(attempt: CallAnswer, at: number): ExecutionEvent {
  switch (attempt.outcome) {
    case "result":
    case "error":
    case "no_such_function":
    case "unreadable":
      return { kind: "answered", at, answer: attempt };
    case "timeout":
    case "gone":
    case "restarting":
    case "unknown":
      return { kind: "unanswered", at };
    case "too_large":
      return { kind: "refused", at, reason: "frame_too_large" };
    case "nobody_listens":
    case "busy":
    case "no_broker":
    case "undelivered":
      return { kind: "put_back" };
  }
}
