import { StoreUnavailable } from "@devmesh/store/store-unavailable";

/** Permits of a {@link FairQueue}. */
export interface FairQueueOptions {
  readonly limit: number;
  readonly perCaller: number;
}

/** A semaphore that shares its permits between callers, however much work each of them queues. */
export interface FairQueue {
  /** Rejects with the signal's reason at once when it aborts; work that has begun keeps its permit until it ends. */
  run<T>(caller: string, signal: AbortSignal, work: () => Promise<T>): Promise<T>;
  /** Rejects what waits and what comes later. */
  close(): void;
}

interface WaitingWork {
  readonly begin: () => void;
  readonly reject: (error: unknown) => void;
}

interface QueuedCaller {
  readonly waiting: Set<WaitingWork>;
  running: number;
  /** The count of permits given to all callers when this one got its last. */
  servedAt: number;
}

/** The next permit goes to the caller that has the fewest, of these to the one that was served least recently. */
export function createFairQueue({ limit, perCaller }: FairQueueOptions): FairQueue {
  /** Callers with work that waits or runs. */
  const callers = new Map<string, QueuedCaller>();
  let running = 0;
  let served = 0;
  let closed = false;

  function nextCaller(): QueuedCaller | undefined {
    let next: QueuedCaller | undefined;
    for (const caller of callers.values()) {
      if (caller.waiting.size === 0 || caller.running >= perCaller) continue;
      const first =
        next === undefined ||
        caller.running < next.running ||
        (caller.running === next.running && caller.servedAt < next.servedAt);
      if (first) next = caller;
    }
    return next;
  }

  function assign(): void {
    while (running < limit) {
      const caller = nextCaller();
      const [next] = caller?.waiting ?? [];
      if (caller === undefined || next === undefined) return;
      caller.waiting.delete(next);
      caller.running++;
      caller.servedAt = ++served;
      running++;
      next.begin();
    }
  }

  function forgetIdle(name: string, caller: QueuedCaller): void {
    if (caller.running === 0 && caller.waiting.size === 0) callers.delete(name);
  }

  return {
    run(name, signal, work) {
      return new Promise((resolve, reject) => {
        if (signal.aborted) return reject(signal.reason);
        if (closed) return reject(new StoreUnavailable("the store is closed"));
        const caller = callers.get(name) ?? { waiting: new Set(), running: 0, servedAt: 0 };
        callers.set(name, caller);
        const settled = () => signal.removeEventListener("abort", onAbort);
        const waiting: WaitingWork = {
          begin() {
            work()
              .then(resolve, reject)
              .finally(() => {
                settled();
                caller.running--;
                running--;
                forgetIdle(name, caller);
                assign();
              });
          },
          reject(error) {
            settled();
            reject(error);
          },
        };
        const onAbort = () => {
          caller.waiting.delete(waiting);
          forgetIdle(name, caller);
          reject(signal.reason);
        };
        signal.addEventListener("abort", onAbort, { once: true });
        caller.waiting.add(waiting);
        assign();
      });
    },
    close() {
      closed = true;
      for (const { waiting } of callers.values())
        for (const one of waiting) one.reject(new StoreUnavailable("the store is closed"));
      callers.clear();
    },
  };
}
