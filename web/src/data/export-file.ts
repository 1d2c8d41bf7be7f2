import { type ExportFormat, exportFormats, gatherBytes } from "./export-records.ts";

/** Most bytes of an export where a browser lets a page write no file. */
const mostInMemory = 100_000_000;

/** Folder of the page's own storage in which exports are gathered that the user cannot pick a file for. */
const storedExports = "exports";

/** How long an export stays in the page's own storage, in milliseconds: until the download has surely copied it. */
const storedMs = 3_600_000;

/** Where an export goes. */
interface ExportFile {
  readonly target: WritableStream<Uint8Array>;
  /** Hands the file to the user once it is written. */
  readonly finish: () => Promise<void> | void;
}

type SaveFilePicker = (options: {
  readonly suggestedName: string;
  readonly types: readonly {
    readonly description: string;
    readonly accept: Readonly<Record<string, readonly string[]>>;
  }[];
}) => Promise<FileSystemFileHandle>;

/** Most bytes that this browser takes of an export; null where it writes them to a file as they come. */
export function exportLimit(): number | null {
  return savePicker() === undefined && !hasOwnStorage() ? mostInMemory : null;
}

/**
 * Opens the file that an export is streamed to: one that the user picks; in browsers without such a picker one in the page's own
 * storage, which is then downloaded; and without either, as when the page did not come over HTTPS, the memory up to 100 MB. Null
 * when the user picks none. To be called within a click.
 */
export async function openExportFile(format: ExportFormat): Promise<ExportFile | null> {
  const name = `records-${new Date().toISOString().slice(0, 19).replaceAll(":", "")}.${format}`;
  const { label, type } = exportFormats[format];
  const pick = savePicker();
  if (pick === undefined) return (await openStoredFile(name)) ?? openMemory(name, type);
  try {
    const handle = await pick.call(window, {
      suggestedName: name,
      types: [{ description: label, accept: { [type]: [`.${format}`] } }],
    });
    return { target: await writableOf(handle), finish: () => {} };
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") return null;
    throw error;
  }
}

function savePicker(): SaveFilePicker | undefined {
  return (window as { showSaveFilePicker?: SaveFilePicker }).showSaveFilePicker;
}

function hasOwnStorage(): boolean {
  return (
    window.isSecureContext &&
    typeof navigator.storage?.getDirectory === "function" &&
    "createWritable" in FileSystemFileHandle.prototype
  );
}

/** Null where the browser gives the page no storage after all, as in some private windows. */
async function openStoredFile(name: string): Promise<ExportFile | null> {
  if (!hasOwnStorage()) return null;
  try {
    const root = await navigator.storage.getDirectory();
    const folder = await root.getDirectoryHandle(storedExports, { create: true });
    await removeOldFiles(folder);
    const handle = await folder.getFileHandle(name, { create: true });
    return {
      target: await writableOf(handle),
      finish: async () => {
        download(await handle.getFile(), name);
        // A page that is closed before leaves it to the next export.
        setTimeout(() => void folder.removeEntry(name).catch(() => {}), storedMs);
      },
    };
  } catch {
    return null;
  }
}

async function removeOldFiles(folder: FileSystemDirectoryHandle): Promise<void> {
  for await (const entry of folder.values()) {
    if (!(entry instanceof FileSystemFileHandle)) continue;
    const { lastModified } = await entry.getFile();
    if (lastModified < Date.now() - storedMs) await folder.removeEntry(entry.name).catch(() => {});
  }
}

function openMemory(name: string, type: string): ExportFile {
  const { target, parts } = gatherBytes(mostInMemory);
  return {
    target: target as WritableStream<Uint8Array>,
    finish: () => download(new Blob([...parts], { type }), name),
  };
}

async function writableOf(handle: FileSystemFileHandle): Promise<WritableStream<Uint8Array>> {
  return (await handle.createWritable()) as WritableStream<Uint8Array>;
}

function download(blob: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  // The download has taken the blob long before.
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
