import type { DataRecord } from "@devmesh/contracts/model/data-record";
import { useVirtualizer } from "@tanstack/react-virtual";
import { memo, useEffect, useRef } from "react";
import { Link } from "wouter";
import { excerptOf, piecesOf } from "./match-marks.ts";
import styles from "./record-table.module.css";

/** Height of a row in pixels, as the style sheet has it. */
const rowHeight = 34;

/** Rows before the end at which more are read. */
const readAhead = 60;

/** What the table shows and tells. */
interface RecordTableProps {
  /** Newest first. */
  readonly records: readonly DataRecord[];
  /** What is marked in topics and payloads; empty for nothing. */
  readonly filter: string;
  readonly hasMore: boolean;
  readonly onNearEnd: () => void;
}

/** Records in a window that scrolls: however many there are, only those in sight are drawn. */
export function RecordTable({ records, filter, hasMore, onNearEnd }: RecordTableProps) {
  const frame = useRef<HTMLDivElement>(null);
  const virtualizer = useVirtualizer({
    count: records.length,
    getScrollElement: () => frame.current,
    estimateSize: () => rowHeight,
    getItemKey: (index) => records[index]?.id ?? index,
    overscan: 8,
    scrollMargin: rowHeight,
  });
  const shown = virtualizer.getVirtualItems();
  const above = (shown[0]?.start ?? rowHeight) - rowHeight;
  const lastShown = shown.at(-1)?.index ?? 0;
  useEffect(() => {
    if (hasMore && lastShown >= records.length - readAhead) onNearEnd();
  }, [hasMore, lastShown, records.length, onNearEnd]);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by the keyboard
    <section ref={frame} className={styles.frame} aria-label="List of records" tabIndex={0}>
      <table
        className={styles.table}
        aria-label="Records, newest first"
        aria-rowcount={hasMore ? -1 : records.length + 1}
      >
        <thead className={styles.head}>
          <tr aria-rowindex={1} className={styles.row}>
            <th scope="col">Time</th>
            <th scope="col">Device</th>
            <th scope="col">Topic</th>
            <th scope="col">Payload</th>
          </tr>
        </thead>
        <tbody className={styles.body} style={{ height: virtualizer.getTotalSize(), paddingTop: above }}>
          {shown.map(({ index }) => {
            const record = records[index];
            return record === undefined ? null : (
              <Row key={record.id} record={record} index={index} filter={filter} />
            );
          })}
        </tbody>
      </table>
    </section>
  );
}

interface RowProps {
  readonly record: DataRecord;
  readonly index: number;
  readonly filter: string;
}

const Row = memo(function Row({ record, index, filter }: RowProps) {
  const isText = record.encoding === undefined;
  return (
    <tr aria-rowindex={index + 2} className={styles.row}>
      <td>
        <time dateTime={record.timestamp} title={record.timestamp}>
          {new Date(record.timestamp).toLocaleString()}
        </time>
      </td>
      <td>
        <Link href={`/devices/${record.device_id}`} className={styles.link}>
          {record.device_id}
        </Link>
      </td>
      <td title={record.topic}>
        <Marked text={record.topic} filter={filter} />
      </td>
      <td className={styles.payload} title={record.message.slice(0, 2_000)}>
        {!isText && "base64: "}
        <Marked text={excerptOf(record.message, isText ? filter : "")} filter={isText ? filter : ""} />
      </td>
    </tr>
  );
});

function Marked({ text, filter }: { readonly text: string; readonly filter: string }) {
  return piecesOf(text, filter).map((piece) =>
    piece.matches ? <mark key={piece.at}>{piece.text}</mark> : <span key={piece.at}>{piece.text}</span>,
  );
}
