import type { Job } from "@devmesh/contracts/model/job";
import { countText } from "../../components/number-text.ts";
import { stateWords } from "../devices/shared/execution-words.ts";
import { countedStates } from "./job-words.ts";
import styles from "./jobs.module.css";

/** How many executions are in which state, as parts of a bar; its label has them in words. */
export function CountBar({ job: { counts, devices } }: { readonly job: Pick<Job, "counts" | "devices"> }) {
  const parts = countedStates.filter((state) => counts[state] > 0);
  const words = parts.map((state) => `${countText(counts[state])} ${stateWords[state]}`).join(", ");
  return (
    <div className={styles.bar} role="img" aria-label={words === "" ? "no devices yet" : words} title={words}>
      {parts.map((state) => (
        <i key={state} data-state={state} style={{ flexGrow: counts[state] / Math.max(1, devices) }} />
      ))}
    </div>
  );
}
