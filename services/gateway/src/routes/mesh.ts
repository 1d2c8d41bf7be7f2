import type { masterKey } from "@devmesh/contracts/rest/master-key";
import type { Clock } from "@devmesh/service-kit/clock";
import { isReason } from "@devmesh/service-kit/errors";
import type { ConcurrencyLimit } from "../http/concurrency-limit.ts";
import { type Caller, json, type Reply, type Within } from "../http/exchange.ts";
import type { ChangeLog } from "../mesh/change-log.ts";
import type { MeshHistoryStore } from "../mesh/mesh-history.ts";
import type { ReadMesh } from "../mesh/mesh-state.ts";
import type { Handlers } from "./handlers.ts";

/** Largest age of an answer, in milliseconds. */
const freshMs = 1_000;
/** How often a stream sends the state, in milliseconds. */
const intervalMs = 2_000;
/** How often the key of a stream is checked, in milliseconds: an ended key ends its stream within it. */
const keyCheckMs = 500;

export interface MeshRouteOptions {
  readonly readMesh: ReadMesh;
  readonly readHistory: MeshHistoryStore["read"];
  readonly changes: Pick<ChangeLog, "read">;
  /** For streams. */
  readonly limit: ConcurrencyLimit;
  readonly clock: Clock;
  readonly stopping: () => boolean;
}

/** Operations about the mesh itself. */
export type MeshOperation = keyof Pick<typeof masterKey, "readMesh" | "readMeshHistory" | "listMeshChanges">;

/** The state of the mesh, once or as a stream, its course, and its last changes. */
export function meshHandlers(options: MeshRouteOptions): Handlers<MeshOperation> {
  return {
    async readMesh({ caller, within, preferred }) {
      if (preferred(["application/json", "text/event-stream"]) === "application/json")
        return json(await options.readMesh(freshMs).state);
      return eventStream(states(caller, within, options));
    },
    async readMeshHistory() {
      return json(JSON.stringify(await options.readHistory()));
    },
    async listMeshChanges() {
      return json(JSON.stringify(await options.changes.read()));
    },
  };
}

/** `text/event-stream` (WHATWG HTML, 9.2) that proxies do not buffer. */
function eventStream(body: AsyncIterable<string>): Reply {
  const headers = { "Content-Type": "text/event-stream", "X-Accel-Buffering": "no" };
  return { status: 200, headers, body };
}

/** Events with the state until the client, its key or the gateway ends. All streams share the same readings. */
async function* states(
  caller: Caller,
  within: Within,
  { readMesh, limit, clock, stopping }: MeshRouteOptions,
): AsyncGenerator<string> {
  /** Waits; returns false when the stream ends before `dueAtMs` on the monotonic clock, throws when the client goes. */
  const waitUntil = async (dueAtMs: number): Promise<boolean> => {
    for (;;) {
      const pauseMs = Math.min(dueAtMs - clock.monotonicMs(), keyCheckMs);
      if (pauseMs <= 0) return true;
      await within(2 * keyCheckMs, ({ signal }) => clock.sleep(pauseMs, signal));
      if (stopping() || (await hasEnded(caller, clock))) return false;
    }
  };
  const release = limit.acquire(caller.keyId, "master");
  try {
    let reading = readMesh(intervalMs);
    yield `data: ${await reading.state}\n\n`;
    while (await waitUntil(reading.begunAtMs + intervalMs)) {
      reading = readMesh(intervalMs);
      yield await reading.state.then(
        (state) => `data: ${state}\n\n`,
        () => ": the mesh cannot be read\n\n",
      );
    }
  } finally {
    release();
  }
}

/** Whether the key is known to be invalid; a failed verification does not count. */
async function hasEnded({ expiresAtMs, verifyAgain }: Caller, clock: Clock): Promise<boolean> {
  if (expiresAtMs <= clock.now().getTime()) return true;
  try {
    await verifyAgain();
    return false;
  } catch (error) {
    return isReason(error, "key_invalid");
  }
}
