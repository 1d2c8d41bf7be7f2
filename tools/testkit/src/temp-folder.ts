import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A folder of the test's own, removed with all its content at the end of an `await using` or by {@link remove}. */
export interface TempFolder extends AsyncDisposable {
  readonly path: string;
  remove(): Promise<void>;
}

/** Makes an empty folder below the system's folder for temporary files. */
export async function tempFolder(): Promise<TempFolder> {
  const path = await mkdtemp(join(tmpdir(), "devmesh-test-"));
  const remove = () => rm(path, { recursive: true, force: true, maxRetries: 3 });
  return { path, remove, [Symbol.asyncDispose]: remove };
}
