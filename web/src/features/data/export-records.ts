import { storedData } from "@devmesh/contracts/rest/stored-data";
import type { ApiClient } from "../../api/api-client.ts";
import { queryOf, type RecordChoice } from "./record-selection.ts";

/** Formats of an export, by file extension. */
export const exportFormats = {
  csv: { label: "CSV", type: "text/csv" },
  ndjson: { label: "NDJSON", type: "application/x-ndjson" },
} as const;
export type ExportFormat = keyof typeof exportFormats;

/**
 * Streams all records of a selection into a file as the server sends them. Rejects, and aborts `target`, when the
 * server refuses or breaks off, when the target fails, or with the signal's reason.
 */
export async function exportRecords(
  api: ApiClient,
  selection: RecordChoice,
  format: ExportFormat,
  target: WritableStream<Uint8Array>,
  signal: AbortSignal,
): Promise<void> {
  try {
    const query = new URLSearchParams(queryOf(selection));
    const { body } = await api.open(`${storedData.queryRecords.path}${query.size > 0 ? `?${query}` : ""}`, {
      headers: { Accept: exportFormats[format].type },
      signal,
    });
    if (body === null) await target.close();
    else await body.pipeTo(target, { signal, preventAbort: true });
  } catch (error) {
    await target.abort(error).catch(() => {});
    throw error;
  }
}

/** A stream into memory, for browsers without files. Fails above `most` bytes. */
export function gatherBytes(most: number): {
  readonly target: WritableStream<Uint8Array<ArrayBuffer>>;
  readonly parts: readonly Uint8Array<ArrayBuffer>[];
} {
  const parts: Uint8Array<ArrayBuffer>[] = [];
  let size = 0;
  const target = new WritableStream<Uint8Array<ArrayBuffer>>({
    write(chunk) {
      size += chunk.byteLength;
      if (size > most) {
        parts.length = 0;
        throw new RangeError(
          `This browser cannot write the export to a file, and it is larger than ${Math.round(most / 1e6)} MB: narrow the selection.`,
        );
      }
      parts.push(chunk);
    },
  });
  return { target, parts };
}
