import type { masterKey } from "@devmesh/contracts/rest/master-key";
import type { Clock } from "@devmesh/service-kit/clock";
import { isReason } from "@devmesh/service-kit/errors";
import type { Caller } from "../exchange.ts";
import type { Handlers, Within } from "../handlers.ts";
import type { ReadMeshState } from "../mesh-state.ts";
import { json, type Reply } from "../reply.ts";

/** How often a listener is told how the mesh does, in milliseconds. */
const tellMs = 2_000;
/** How often its key is looked at, in milliseconds: one that has ended ends its stream within it. */
const keyCheckMs = 500;

/** What {@link meshHandlers} need. */
export interface MeshRouteOptions {
  readonly readMeshState: ReadMeshState;
  readonly clock: Clock;
  /** Whether the gateway is stopping. */
  readonly stopping: () => boolean;
}

/** How the mesh does, once or for as long as the client listens. */
export function meshHandlers(options: MeshRouteOptions): Handlers<keyof Pick<typeof masterKey, "readMesh">> {
  return {
    async readMesh({ caller, within, preferred }) {
      const first = JSON.stringify(await options.readMeshState());
      if (preferred(["application/json", "text/event-stream"]) === "application/json") return json(first);
      return eventStream(tellAgainAndAgain(first, caller, within, options));
    },
  };
}

/** As `text/event-stream` (WHATWG HTML, 9.2) that no proxy is to hold back. */
function eventStream(body: AsyncIterable<string>): Reply {
  const headers = { "Content-Type": "text/event-stream", "X-Accel-Buffering": "no" };
  return { status: 200, headers, body };
}

async function* tellAgainAndAgain(
  first: string,
  caller: Caller,
  within: Within,
  { readMeshState, clock, stopping }: MeshRouteOptions,
): AsyncGenerator<string> {
  yield `data: ${first}\n\n`;
  for (;;) {
    for (let waited = 0; waited < tellMs; waited += keyCheckMs) {
      // Ends when the client goes away.
      await within(2 * keyCheckMs, ({ signal }) => clock.sleep(keyCheckMs, signal));
      if (stopping() || (await hasEnded(caller, clock))) return;
    }
    yield await readMeshState().then(
      (state) => `data: ${JSON.stringify(state)}\n\n`,
      () => ": the mesh cannot be read\n\n",
    );
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
