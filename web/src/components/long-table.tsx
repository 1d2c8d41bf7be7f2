import { useVirtualizer } from "@tanstack/react-virtual";
import { type CSSProperties, type ReactNode, useEffect, useRef } from "react";
import styles from "./long-table.module.css";

/** Minimum of row slots: a window of usual height never needs more, so the slots stay while it scrolls. */
const leastSlots = 64;

/** Height of the header, in pixels. */
const headHeight = 34;

/** Distance to the last row at which more rows are read. */
const readAhead = 60;

/** Properties of {@link LongTable}. */
interface LongTableProps {
  readonly label: string;
  /** Accessible name of the region that scrolls. */
  readonly frameLabel: string;
  /** Sets `--columns`, the grid of a row. */
  readonly className: string | undefined;
  /** Of the table. */
  readonly style?: CSSProperties;
  /** In pixels, of each row. */
  readonly rowHeight: number;
  /** Number of rows so far. */
  readonly count: number;
  /** More rows can be read. */
  readonly hasMore: boolean;
  readonly onNearEnd: () => void;
  /** Header cells. */
  readonly head: ReactNode;
  /**
   * The row at an index, a `tr` with a key and an `aria-rowindex` that counts the header. A row whose key is its slot
   * lends its elements to the next one that needs them, which makes fast scrolling cheap; one with a key
   * keeps them.
   */
  readonly rowAt: (index: number, slot: number) => ReactNode;
}

/** A table that scrolls in a window and draws only its visible rows. */
export function LongTable(props: LongTableProps) {
  const { label, frameLabel, className, style, rowHeight, count, hasMore, onNearEnd, head, rowAt } = props;
  const frame = useRef<HTMLDivElement>(null);
  const virtualizer = useVirtualizer({
    count,
    getScrollElement: () => frame.current,
    estimateSize: () => rowHeight,
    overscan: 6,
    scrollMargin: headHeight,
  });
  const shown = virtualizer.getVirtualItems();
  // One padding above all rows: with a position for each row, the browser's work would grow while it scrolls.
  const above = (shown[0]?.start ?? headHeight) - headHeight;
  const slots = Math.max(leastSlots, shown.length);
  const lastShown = shown.at(-1)?.index ?? 0;
  useEffect(() => {
    if (hasMore && lastShown >= count - readAhead) onNearEnd();
  }, [hasMore, lastShown, count, onNearEnd]);
  const rowStyle = { "--row-height": `${rowHeight}px`, ...style } as CSSProperties;

  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls it
    <section ref={frame} className={styles.frame} aria-label={frameLabel} tabIndex={0}>
      <table
        className={`${styles.table} ${className}`}
        style={rowStyle}
        aria-label={label}
        aria-rowcount={hasMore ? -1 : count + 1}
      >
        <thead className={styles.head}>
          <tr aria-rowindex={1}>{head}</tr>
        </thead>
        <tbody className={styles.body} style={{ height: virtualizer.getTotalSize(), paddingTop: above }}>
          {shown.map(({ index }) => rowAt(index, index % slots))}
        </tbody>
      </table>
    </section>
  );
}
