import type { DataRecord } from "@devmesh/contracts/model/data-record";
import { memo } from "react";
import { Link } from "wouter";
import { LongTable } from "../elements/long-table.tsx";
import { excerptOf, piecesOf } from "./match-marks.ts";
import styles from "./record-table.module.css";

const rowHeight = 34;

const columns = ["Time", "Device", "Topic", "Payload"] as const;

/** What the table shows and tells. */
interface RecordTableProps {
  /** Newest first. */
  readonly records: readonly DataRecord[];
  /** What is marked in topics and payloads; empty for nothing. */
  readonly filter: string;
  readonly hasMore: boolean;
  readonly onNearEnd: () => void;
}

/** Records, however many: only those in sight are drawn. */
export function RecordTable({ records, filter, hasMore, onNearEnd }: RecordTableProps) {
  return (
    <LongTable
      label="Records, newest first"
      frameLabel="List of records"
      className={styles.records}
      rowHeight={rowHeight}
      count={records.length}
      hasMore={hasMore}
      onNearEnd={onNearEnd}
      head={columns.map((label) => (
        <th key={label} scope="col">
          {label}
        </th>
      ))}
      rowAt={(index) => {
        const record = records[index];
        // Records that come on top move the others: they keep their elements.
        return record === undefined ? null : (
          <Row key={record.id} record={record} index={index} filter={filter} />
        );
      }}
    />
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
    <tr aria-rowindex={index + 2}>
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
