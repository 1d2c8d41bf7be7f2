import type { masterKey } from "@devmesh/contracts/rest/master-key";
import type { Clock } from "@devmesh/service-kit/clock";
import { isReason } from "@devmesh/service-kit/errors";
import type { Places } from "../http/concurrency-limit.ts";
import type { Caller } from "../http/exchange.ts";
import type { Handlers, Within } from "../http/handlers.ts";
import { json, type Reply } from "../http/reply.ts";
import type { ReadMesh } from "./mesh-state.ts";

/** How old an answer may be, in milliseconds. */
const freshMs = 1_000;
/** How often listeners are told how the mesh does, in milliseconds. */
const tellMs = 2_000;
/** How often a listener's key is looked at, in milliseconds: one that has ended ends its stream within it. */
const keyCheckMs = 500;

/** What {@link meshHandlers} need. */
export interface MeshRouteOptions {
  readonly readMesh: ReadMesh;
  /** For those who listen. */
  readonly places: Places;
  readonly clock: Clock;
  /** Whether the gateway is stopping. */
  readonly stopping: () => boolean;
}

/** How the mesh does, once or for as long as the client listens. */
export function meshHandlers(options: MeshRouteOptions): Handlers<keyof Pick<typeof masterKey, "readMesh">> {
  return {
    async readMesh({ caller, within, preferred }) {
      if (preferred(["application/json", "text/event-stream"]) === "application/json")
        return json(await options.readMesh(freshMs).state);
      return eventStream(tellAgainAndAgain(caller, within, options));
    },
  };
}

/** As `text/event-stream` (WHATWG HTML, 9.2) that no proxy is to hold back. */
function eventStream(body: AsyncIterable<string>): Reply {
  const headers = { "Content-Type": "text/event-stream", "X-Accel-Buffering": "no" };
  return { status: 200, headers, body };
}

/**
 * All listeners are told the same readings: the next is due at the same moment for each of them, and the first begins
 * it.
 */
async function* tellAgainAndAgain(
  caller: Caller,
  within: Within,
  { readMesh, places, clock, stopping }: MeshRouteOptions,
): AsyncGenerator<string> {
  /**
   * Whether the listener is still to be told at a moment of the monotonic clock. Throws when the client goes away
   * before.
   */
  const listensUntil = async (dueAtMs: number): Promise<boolean> => {
    for (;;) {
      const pauseMs = Math.min(dueAtMs - clock.monotonicMs(), keyCheckMs);
      if (pauseMs <= 0) return true;
      await within(2 * keyCheckMs, ({ signal }) => clock.sleep(pauseMs, signal));
      if (stopping() || (await hasEnded(caller, clock))) return false;
    }
  };
  const leave = places.take(caller.keyId, "master");
  try {
    let reading = readMesh(tellMs);
    yield `data: ${await reading.state}\n\n`;
    while (await listensUntil(reading.begunAtMs + tellMs)) {
      reading = readMesh(tellMs);
      yield await reading.state.then(
        (state) => `data: ${state}\n\n`,
        () => ": the mesh cannot be read\n\n",
      );
    }
  } finally {
    leave();
  }
}

/** Whether a key is known to stand no more; one that cannot be verified just now does. */
async function hasEnded({ expiresAtMs, verifyAgain }: Caller, clock: Clock): Promise<boolean> {
  if (expiresAtMs <= clock.now().getTime()) return true;
  try {
    await verifyAgain();
    return false;
  } catch (error) {
    return isReason(error, "key_invalid");
  }
}
