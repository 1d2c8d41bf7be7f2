import { mesh } from "@devmesh/contracts/mesh";
import { useEffect } from "react";
import { useApi } from "../../api/api-context.tsx";
import { queryKeys } from "../../api/query-keys.ts";
import type { StreamState } from "../../live/lasting-stream.ts";
import { pageVisibility } from "../../live/page-visibility.ts";
import { useStreamed } from "../../live/use-streamed.ts";
import { followMesh } from "./mesh-stream.ts";
import { type MeshObservation, observe } from "./observation.ts";

/** The known state of the mesh. */
interface FollowedMesh {
  /** Null until the first reading. */
  readonly observation: MeshObservation | null;
  readonly stream: StreamState;
  /** The server responds but cannot read the mesh. */
  readonly unread: boolean;
}

const unknown: FollowedMesh = { observation: null, stream: "connecting", unread: false };
const expected = Object.keys(mesh);

/** Follows the mesh while the component is mounted and the page is visible. */
export function useMesh(): FollowedMesh {
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
          observation: state === null ? before.observation : observe(before.observation, state, expected),
        })),
      onState: (stream) => update((before) => ({ ...before, stream })),
      visibility: pageVisibility(),
      signal: leaving.signal,
    });
    return () => leaving.abort();
  }, [api, update]);
  return followed;
}
