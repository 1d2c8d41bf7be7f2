import { FileInput, Progress, Text } from "@mantine/core";
import { FileUp } from "lucide-react";
import { useEffect, useState } from "react";
import { bytesText } from "../../components/number-text.ts";
import { hashFile } from "./hash-file.ts";

/** A file that was chosen, and its SHA-256 once it is known. */
export interface HashedFile {
  readonly file: File;
  /** Bytes that were read so far. */
  readonly read: number;
  /** In hex; null before. */
  readonly sha256: string | null;
  /** Why it cannot be read; null if it can. */
  readonly error: string | null;
}

/** Reads a file that is chosen; null before. */
export function useHashedFile(): readonly [HashedFile | null, (file: File | null) => void] {
  const [file, choose] = useState<File | null>(null);
  const [hashed, setHashed] = useState<HashedFile | null>(null);
  useEffect(() => {
    setHashed(file && { file, read: 0, sha256: null, error: null });
    if (file === null) return;
    const ending = new AbortController();
    const change = (changes: Partial<HashedFile>) => {
      if (!ending.signal.aborted) setHashed((before) => before && { ...before, ...changes });
    };
    if (file.size === 0) change({ error: "The file is empty." });
    else
      hashFile(file, ending.signal, (read) => change({ read })).then(
        (sha256) => change({ sha256 }),
        (error: unknown) =>
          change({
            error: `The file cannot be read: ${error instanceof Error ? error.message : String(error)}`,
          }),
      );
    return () => ending.abort();
  }, [file]);
  return [hashed, choose];
}

/** Properties of {@link FileField}. */
interface FileFieldProps {
  readonly hashed: HashedFile | null;
  readonly onChoose: (file: File | null) => void;
  /** What is wrong with the file besides. */
  readonly error?: string | undefined;
}

/** The field of a file, with its size and SHA-256. */
export function FileField({ hashed, onChoose, error }: FileFieldProps) {
  const { file = null, read = 0, sha256 = null } = hashed ?? {};
  return (
    <>
      <FileInput
        label="File"
        placeholder="Choose a file"
        leftSection={<FileUp size={16} aria-hidden="true" />}
        required
        withAsterisk={false}
        value={file}
        onChange={onChoose}
        error={hashed?.error ?? error}
      />
      {file !== null && hashed?.error === null && (
        <div>
          <Text size="xs" c="dimmed" role="status" style={{ overflowWrap: "anywhere" }}>
            {bytesText(file.size)}
            {sha256 === null ? (
              `, ${bytesText(read)} read`
            ) : (
              <>
                {", SHA-256 "}
                <Text span size="xs" ff="monospace">
                  {sha256}
                </Text>
              </>
            )}
          </Text>
          {sha256 === null && (
            <Progress
              mt={4}
              size="sm"
              value={(read / file.size) * 100}
              aria-label="How much of the file is read"
            />
          )}
        </div>
      )}
    </>
  );
}
