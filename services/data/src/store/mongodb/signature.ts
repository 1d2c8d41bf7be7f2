/**
 * A bit matrix of where a text may be: rows are runs of record ids, columns are hashes of grams (short substrings). A
 * row that lacks one gram of a filter has no match. It is stored by columns, several to a slice.
 */
export interface SignatureLayout {
  readonly idsPerRow: number;
  readonly bytesPerColumn: number;
  readonly columnsPerSlice: number;
}

/** Rows of the matrix of a full segment. */
const mostRows = 1_024;
/** Columns of the matrix. A power of two. */
const columns = 16_384;
const sliceBytes = 4_096;
/** Lengths of grams, in UTF-16 code units: long ones distinguish numbers, short ones serve short filters. */
const shortGram = 3;
const longGram = 5;
/** More grams than this make no filter more precise. */
const mostGrams = 8;

/** Shorter filters read through the records; in UTF-16 code units. */
export const shortestSearched = shortGram;

/** The layout for a run of so many record ids. */
export function layoutOf(ids: number): SignatureLayout {
  const idsPerRow = Math.ceil(ids / mostRows);
  const bytesPerColumn = Math.ceil(Math.ceil(ids / idsPerRow) / 8);
  return { idsPerRow, bytesPerColumn, columnsPerSlice: Math.floor(sliceBytes / bytesPerColumn) };
}

/** The size of a matrix. */
export function signatureBytes({ bytesPerColumn }: SignatureLayout): number {
  return columns * bytesPerColumn;
}

/** A matrix under construction. */
export interface SignatureBuilder {
  /** Adds all grams of a text; `offset` is its record's id minus the first one. */
  add(offset: number, text: string): void;
  /** The slices, in order; each a view, not a copy. */
  slices(): Uint8Array[];
}

/** An empty matrix: 2 MB at most. */
export function createSignature({
  idsPerRow,
  bytesPerColumn,
  columnsPerSlice,
}: SignatureLayout): SignatureBuilder {
  const bits = Buffer.alloc(columns * bytesPerColumn);
  return {
    add(offset, text) {
      const row = Math.floor(offset / idsPerRow);
      const byte = row >> 3;
      const bit = 1 << (row & 7);
      const set = (column: number) => {
        const at = column * bytesPerColumn + byte;
        bits[at] = (bits[at] ?? 0) | bit;
      };
      for (let end = shortGram; end <= text.length; end++) {
        set(columnOf(text, end - shortGram, shortGram));
        if (end >= longGram) set(columnOf(text, end - longGram, longGram));
      }
    },
    slices() {
      const bytes = columnsPerSlice * bytesPerColumn;
      return Array.from({ length: Math.ceil(bits.length / bytes) }, (_, at) =>
        bits.subarray(at * bytes, (at + 1) * bytes),
      );
    },
  };
}

/** Columns that are set in each row with a match; none for a filter below {@link shortestSearched}. */
export function columnsOf(filter: string): readonly number[] {
  const length = filter.length >= longGram ? longGram : shortGram;
  const grams = Math.max(0, filter.length - length + 1);
  const stride = Math.max(1, grams / mostGrams);
  const found = new Set<number>();
  for (let at = 0; at < grams; at += stride) found.add(columnOf(filter, Math.floor(at), length));
  return [...found];
}

/** The number of the slice that holds a column. */
export function sliceOf(column: number, { columnsPerSlice }: SignatureLayout): number {
  return Math.floor(column / columnsPerSlice);
}

/** Rows that are set in all columns, ascending; a column whose slice is missing is ignored. */
export function rowsInAll(
  wanted: readonly number[],
  slices: ReadonlyMap<number, Uint8Array>,
  layout: SignatureLayout,
): number[] {
  const { bytesPerColumn, columnsPerSlice } = layout;
  const given = wanted.flatMap((column) => {
    const bits = slices.get(sliceOf(column, layout));
    return bits === undefined ? [] : [{ bits, offset: (column % columnsPerSlice) * bytesPerColumn }];
  });
  const rows: number[] = [];
  for (let byte = 0; byte < bytesPerColumn; byte++) {
    let all = 0xff;
    for (const { bits, offset } of given) all &= bits[offset + byte] ?? 0;
    for (let bit = 0; bit < 8; bit++) if ((all & (1 << bit)) !== 0) rows.push(byte * 8 + bit);
  }
  return rows;
}

/** FNV-1a over code units, mixed so that the low bits depend on all. */
function columnOf(text: string, from: number, length: number): number {
  let hash = 0x811c9dc5 ^ length;
  for (let at = from; at < from + length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d);
  return (hash ^ (hash >>> 13)) & (columns - 1);
}
