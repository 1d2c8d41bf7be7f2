import type { DataRecord } from "@devmesh/contracts/model/data-record";
import { memo } from "react";
import { Link } from "wouter";
import { LongTable } from "../../components/long-table.tsx";
import { clockText, dateText } from "../../components/time-in-words.ts";
import { excerptOf, piecesOf } from "./match-marks.ts";
import styles from "./record-table.module.css";

const rowHeight = 37;

const columns = ["Time", "Device", "Topic", "Payload"] as const;

/** Properties of the table. */
interface RecordTableProps {
  /** Newest first. */
  readonly records: readonly DataRecord[];
  /** The text to be marked in topics and payloads; empty for none. */
  readonly filter: string;
  readonly hasMore: boolean;
  readonly onNearEnd: () => void;
  /** A stable function. */
  readonly onOpen: (record: DataRecord) => void;
}

/** A list of records of any length. */
export function RecordTable({ records, filter, hasMore, onNearEnd, onOpen }: RecordTableProps) {
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
          <Row key={record.id} record={record} index={index} filter={filter} onOpen={onOpen} />
        );
      }}
    />
  );
}

interface RecordRowProps {
  readonly record: DataRecord;
  readonly index: number;
  readonly filter: string;
  readonly onOpen: (record: DataRecord) => void;
}

const Row = memo(function Row({ record, index, filter, onOpen }: RecordRowProps) {
  const isText = record.encoding === undefined;
  return (
    <tr aria-rowindex={index + 2}>
      <td>
        <time dateTime={record.timestamp} title={record.timestamp}>
          <span className={styles.date}>{dateText(record.timestamp)}</span>
          {clockText(record.timestamp)}
        </time>
      </td>
      <td>
        <Link href={`/devices/${record.device_id}`}>{record.device_id}</Link>
      </td>
      <td title={record.topic}>
        <Marked text={record.topic} filter={filter} />
      </td>
      <td>
        <button
          type="button"
          className={styles.payload}
          aria-haspopup="dialog"
          title="Show the whole record"
          onClick={() => onOpen(record)}
        >
          {!isText && "base64: "}
          <Marked text={excerptOf(record.message, isText ? filter : "")} filter={isText ? filter : ""} />
          {record.message === "" && <em>empty</em>}
        </button>
      </td>
    </tr>
  );
});

function Marked({ text, filter }: { readonly text: string; readonly filter: string }) {
  return piecesOf(text, filter).map((piece) =>
    piece.matches ? <mark key={piece.at}>{piece.text}</mark> : <span key={piece.at}>{piece.text}</span>,
  );
}
