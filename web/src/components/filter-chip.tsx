import { X } from "lucide-react";
import type { ReactNode } from "react";
import styles from "./filter-chip.module.css";

/** Properties of {@link FilterChip}. */
interface FilterChipProps {
  /** What is compared, as in "Label". */
  readonly subject: string;
  /** How, as in "is not"; left out for "is". */
  readonly relation?: string;
  /** With what. */
  readonly value: ReactNode;
  readonly onRemove: () => void;
}

/** One condition of a filter, which can be taken away. */
export function FilterChip({ subject, relation, value, onRemove }: FilterChipProps) {
  const text = [subject, relation, typeof value === "string" ? value : ""].filter(Boolean).join(" ");
  return (
    <span className={styles.chip}>
      <span className={styles.part}>{subject}</span>
      {relation !== undefined && <span className={styles.part}>{relation}</span>}
      <span className={styles.value}>{value}</span>
      <button
        type="button"
        className={styles.remove}
        aria-label={`Remove the filter ${text}`}
        onClick={onRemove}
      >
        <X size={14} />
      </button>
    </span>
  );
}
