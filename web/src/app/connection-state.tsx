import { release } from "@devmesh/contracts/release";
import { StateDot, type StateLook } from "../components/state.tsx";
import type { StreamState } from "../live/lasting-stream.ts";
import { useStreamState } from "../live/live-updates.tsx";
import styles from "./shell.module.css";

const streamStates: Readonly<Record<StreamState, { readonly text: string; readonly look: StateLook }>> = {
  connecting: { text: "Connecting", look: "idle" },
  live: { text: "Live", look: "good" },
  reconnecting: { text: "Reconnecting", look: "warn" },
  unavailable: { text: "No live updates", look: "warn" },
};

/** State of the live updates, which screen readers announce, and the release. */
export function ConnectionState() {
  const { text, look } = streamStates[useStreamState()];
  return (
    <div className={styles.state}>
      <StateDot look={look} />
      <span role="status" aria-live="polite" className={styles.label}>
        {text}
      </span>
      <span className={styles.version}>{release}</span>
    </div>
  );
}
