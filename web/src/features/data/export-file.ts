import { type ExportFormat, exportFormats, gatherBytes } from "./export-records.ts";

/** Maximum size of an export without a file, in bytes. */
const mostInMemory = 100_000_000;

/** Folder of the page's own storage for exports. */
const storedExports = "exports";

/** Time for which an export stays in the page's own storage, in milliseconds: longer than its download. */
const storedMs = 3_600_000;

/** The target of an export. */
interface ExportFile {
  readonly target: WritableStream<Uint8Array>;
  /** Offers the written file to the user. */
  readonly finish: () => Promise<void> | void;
}

type SaveFilePicker = (options: {
  readonly suggestedName: string;
  readonly types: readonly {
    readonly description: string;
    readonly accept: Readonly<Record<string, readonly string[]>>;
  }[];
}) => Promise<FileSystemFileHandle>;

/** Maximum size of an export in this browser, in bytes; null for none. */
export function exportLimit(): number | null {
  return savePicker() === undefined && !hasOwnStorage() ? mostInMemory : null;
}

/**
 * Opens the target of an export within a click: a file that the user picks, else one in the page's own storage that is
 * downloaded, else up to 100 MB of memory, as on pages without HTTPS. Returns null if the user picks no file.
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
    return { target: await handle.createWritable(), finish: () => {} };
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

/** Null without storage, as in some private windows. */
async function openStoredFile(name: string): Promise<ExportFile | null> {
  if (!hasOwnStorage()) return null;
  try {
    const root = await navigator.storage.getDirectory();
    const folder = await root.getDirectoryHandle(storedExports, { create: true });
    await removeOldFiles(folder);
    const handle = await folder.getFileHandle(name, { create: true });
    return {
      target: await handle.createWritable(),
      finish: async () => {
        download(await handle.getFile(), name);
        // After a page is closed, the next export removes its file.
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

function download(blob: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  // By then, the download has copied the blob.
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
