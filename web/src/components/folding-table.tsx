import { Table, type TableProps } from "@mantine/core";
import { useEffect, useLayoutEffect, useRef } from "react";
import styles from "./folding-table.module.css";

/** Properties of {@link FoldingTable}, and others of the table. */
interface FoldingTableProps extends TableProps {
  /** Width below which it folds in any case, in pixels. */
  readonly minWidth: number;
}

/**
 * A table that never scrolls sideways. Where it is wider than its place, each row is a block: its first line has the
 * cell that names it and the controls, the next ones have the other cells, each after its `data-label`.
 */
export function FoldingTable({ minWidth, ...table }: FoldingTableProps) {
  const frame = useRef<HTMLDivElement>(null);
  const content = useRef<HTMLTableElement>(null);
  const fold = () => {
    const width = frame.current?.clientWidth ?? 0;
    if (content.current === null || width === 0) return;
    // Unfolded, it is as wide as its content.
    delete content.current.dataset.folded;
    if (width < minWidth || content.current.offsetWidth > width) content.current.dataset.folded = "";
  };
  const latest = useRef(fold);
  // Before each picture, so that nobody sees it change.
  useLayoutEffect(() => {
    latest.current = fold;
    fold();
  });
  useEffect(() => {
    let waiting = 0;
    // Later, since a change in its callback would be another change for the observer.
    const observer = new ResizeObserver(() => {
      cancelAnimationFrame(waiting);
      waiting = requestAnimationFrame(() => latest.current());
    });
    for (const { current } of [frame, content]) if (current !== null) observer.observe(current);
    return () => {
      cancelAnimationFrame(waiting);
      observer.disconnect();
    };
  }, []);
  return (
    <div ref={frame}>
      <Table ref={content} className={styles.table ?? ""} {...table} />
    </div>
  );
}
