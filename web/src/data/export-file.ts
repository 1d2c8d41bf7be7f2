import { type ExportFormat, exportFormats, gatherBytes } from "./export-records.ts";

/** Most bytes of an export where a browser lets a page write no file. */
const mostInMemory = 100_000_000;

/** Where an export goes. */
interface ExportFile {
  readonly target: WritableStream<Uint8Array>;
  /** Hands the file to the user once it is written. */
  readonly finish: () => void;
}

type SaveFilePicker = (options: {
  readonly suggestedName: string;
  readonly types: readonly {
    readonly description: string;
    readonly accept: Readonly<Record<string, readonly string[]>>;
  }[];
}) => Promise<FileSystemFileHandle>;

/**
 * Opens the file that an export is streamed to: one that the user picks; where a browser has no picker, or the page did not
 * come over HTTPS, it is gathered up to 100 MB and then downloaded. Null when the user picks none. To be called within a click.
 */
export async function openExportFile(format: ExportFormat): Promise<ExportFile | null> {
  const name = `records-${new Date().toISOString().slice(0, 19).replaceAll(":", "")}.${format}`;
  const { label, type } = exportFormats[format];
  const pick = (window as { showSaveFilePicker?: SaveFilePicker }).showSaveFilePicker;
  if (pick === undefined) {
    const { target, parts } = gatherBytes(mostInMemory);
    return {
      target: target as WritableStream<Uint8Array>,
      finish: () => download(new Blob([...parts], { type }), name),
    };
  }
  try {
    const handle = await pick.call(window, {
      suggestedName: name,
      types: [{ description: label, accept: { [type]: [`.${format}`] } }],
    });
    return { target: (await handle.createWritable()) as WritableStream<Uint8Array>, finish: () => {} };
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") return null;
    throw error;
  }
}

function download(blob: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  // The download has taken the blob long before.
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
