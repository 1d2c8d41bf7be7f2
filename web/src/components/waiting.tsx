import { VisuallyHidden } from "@mantine/core";
import styles from "./waiting.module.css";

/** The shape of what is loaded, after 150 ms: before that a page that is there at once would flicker. */
export function Waiting({ rows = 6 }: { readonly rows?: number }) {
  return (
    <div className={styles.waiting} role="status">
      <VisuallyHidden>Loading</VisuallyHidden>
      {Array.from({ length: rows }, (_, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: rows have no identity but their place
        <div key={at} className={styles.row} aria-hidden="true" />
      ))}
    </div>
  );
}

/** The shape of a figure of a table that is not known yet. */
export function WaitingFigure() {
  return (
    <>
      <span className={styles.figure} aria-hidden="true" />
      <VisuallyHidden>not known yet</VisuallyHidden>
    </>
  );
}
