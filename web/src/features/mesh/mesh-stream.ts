import { serviceNames } from "@devmesh/contracts/mesh";
import { MeshState } from "@devmesh/contracts/model/mesh-state";
import { api as routes } from "@devmesh/contracts/rest/api";
import { useEffect } from "react";
import type { ApiClient } from "../../api/api-client.ts";
import { useApi } from "../../api/api-context.tsx";
import { queryKeys } from "../../api/query-keys.ts";
import { parsedEvent } from "../../live/event-stream.ts";
import { followEventStream, type StreamState, type StreamTimeouts } from "../../live/lasting-stream.ts";
import { pageVisibility } from "../../live/page-visibility.ts";
import { useStreamed } from "../../live/use-streamed.ts";
import { type MeshObservation, observe } from "./observation.ts";

/** Options of {@link followMesh}. The server sends an event every 2 to 5 s. */
interface MeshStreamOptions extends StreamTimeouts {
  readonly api: ApiClient;
  /** Called with each reading; with null if the server could not read the mesh. */
  readonly onReading: (state: MeshState | null) => void;
  readonly onState: (state: StreamState) => void;
  /** Ends the stream. */
  readonly signal: AbortSignal;
}

/** Follows the state of the mesh (`GET /api/v2/mesh`) until `signal` fires, over lost connections. */
export async function followMesh({ onReading, ...stream }: MeshStreamOptions): Promise<void> {
  await followEventStream({
    backOffMs: [250, 1_000, 2_000, 5_000],
    silenceMs: 15_000,
    ...stream,
    address: () => routes.readMesh.path,
    onEvent(event) {
      if (event === null) return onReading(null);
      const state = parsedEvent(MeshState, event.data);
      if (event.event !== "message" || state === null) return;
      // Without any service, not even the gateway, the bus did not respond.
      onReading(state.services.length === 0 ? null : state);
    },
  });
}

/** The known state of the mesh. */
interface UsedMesh {
  /** Null until the first reading. */
  readonly observation: MeshObservation | null;
  /** Why it is missing or may be outdated; null if it is not. */
  readonly trouble: string | null;
}

interface FollowedMesh {
  readonly observation: MeshObservation | null;
  readonly stream: StreamState;
  /** The server responds but cannot read the mesh. */
  readonly unread: boolean;
}

const unknown: FollowedMesh = { observation: null, stream: "connecting", unread: false };

/** Follows the mesh while the component is mounted and the page is visible. */
export function useMesh(): UsedMesh {
  const api = useApi();
  const [followed, update] = useStreamed(queryKeys.mesh, unknown);
  useEffect(() => {
    const leaving = new AbortController();
    void followMesh({
      api,
      onReading: (state) =>
        update((before) => ({
          ...before,
          unread: state === null,
          observation: state === null ? before.observation : observe(before.observation, state, serviceNames),
        })),
      onState: (stream) => update((before) => ({ ...before, stream })),
      visibility: pageVisibility(),
      signal: leaving.signal,
    });
    return () => leaving.abort();
  }, [api, update]);
  return { observation: followed.observation, trouble: describeTrouble(followed) };
}

function describeTrouble({ stream, unread }: FollowedMesh): string | null {
  if (stream === "reconnecting") return "The connection to the mesh is lost";
  if (stream === "unavailable") return "The server does not report the state of the mesh";
  return stream === "live" && unread ? "The gateway cannot reach the mesh" : null;
}
