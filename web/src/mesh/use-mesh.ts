import { mesh } from "@devmesh/contracts/mesh";
import { useEffect, useState } from "react";
import { useApi } from "../api/api-context.tsx";
import type { StreamState } from "../live/lasting-stream.ts";
import { pageSight } from "../live/page-sight.ts";
import { followMesh } from "./mesh-stream.ts";
import { type MeshObservation, observe } from "./observation.ts";

/** How the mesh does, as far as it is known. */
interface FollowedMesh {
  /** Null until the first reading. */
  readonly observation: MeshObservation | null;
  readonly stream: StreamState;
  /** The server is there but cannot read the mesh just now. */
  readonly unread: boolean;
}

const expected = Object.keys(mesh);

/** Follows how the mesh does while the component is there and the page is in sight. */
export function useMesh(): FollowedMesh {
  const api = useApi();
  const [observation, setObservation] = useState<MeshObservation | null>(null);
  const [stream, setStream] = useState<StreamState>("connecting");
  const [unread, setUnread] = useState(false);
  useEffect(() => {
    const leaving = new AbortController();
    void followMesh({
      api,
      onReading(state) {
        setUnread(state === null);
        if (state !== null) setObservation((before) => observe(before, state, expected));
      },
      onState: setStream,
      sight: pageSight(),
      signal: leaving.signal,
    });
    return () => leaving.abort();
  }, [api]);
  return { observation, stream, unread };
}
