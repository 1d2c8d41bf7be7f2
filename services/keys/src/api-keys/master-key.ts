import { randomUUID } from "node:crypto";
import { chmod, mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { createSecret, digestSecret } from "../credentials/secret.ts";
import type { KeyStore } from "../store/key-store.ts";
import { type NewApiKeyOptions, newApiKey, openApiKey } from "./api-keys.ts";

/** What the start makes sure of. */
export interface MasterKeyOptions extends NewApiKeyOptions {
  readonly store: Pick<KeyStore, "apiKeys">;
  /** `MASTER_KEY`: added when the store does not hold it. */
  readonly preset: string | undefined;
  /** `MASTER_KEY_FILE`. */
  readonly file: string | undefined;
  readonly signal: AbortSignal;
}

/** Names under which people see them in lists and as who changed something. */
const firstName = "First key";
const presetName = "MASTER_KEY";

/** At each start: stores a preset master key, makes one when none is valid, and writes a valid one into the file. */
export async function ensureMasterKey(options: MasterKeyOptions): Promise<void> {
  const { store, clock, preset, file, signal } = options;
  if (preset !== undefined) {
    await store.apiKeys.insert({ ...newApiKey(options, preset), name: presetName }, signal);
    if (!(await isValidMaster(options, preset)))
      throw new Error("MASTER_KEY has expired: choose another one");
  }
  const made = { ...newApiKey(options, createSecret("master")), name: firstName };
  const oldest = await store.apiKeys.insertMasterIfNone(made, clock.now().getTime(), signal);
  const secret = preset ?? openApiKey(options.encryption, oldest);
  if (file !== undefined) await writeMasterKey(options, file, secret);
}

/** A file that holds a valid master key stays as it is: the operator may have chosen among several. */
async function writeMasterKey(options: MasterKeyOptions, file: string, secret: string): Promise<void> {
  try {
    const held = await readMasterKey(file);
    if (
      held !== null &&
      (held === secret || (options.preset === undefined && (await isValidMaster(options, held))))
    ) {
      await chmod(file, 0o600);
      return;
    }
    await mkdir(dirname(file), { recursive: true });
    // Replaced whole, and never readable by others; replicas may share the folder.
    const draft = `${file}.${randomUUID()}.new`;
    try {
      await writeFile(draft, `${secret}\n`, { mode: 0o600, flag: "wx", flush: true });
      await rename(draft, file);
    } finally {
      await rm(draft, { force: true });
    }
  } catch (cause) {
    throw new Error(`MASTER_KEY_FILE ${file} cannot be written (${errorCode(cause) ?? "unknown error"})`, {
      cause,
    });
  }
}

async function readMasterKey(file: string): Promise<string | null> {
  try {
    return (await readFile(file, "utf8")).trim();
  } catch (error) {
    if (errorCode(error) === "ENOENT") return null;
    throw error;
  }
}

async function isValidMaster({ store, clock, signal }: MasterKeyOptions, secret: string): Promise<boolean> {
  const key = await store.apiKeys.findByDigest(digestSecret(secret), signal);
  if (key === null || key.device_id !== null) return false;
  return key.expires_at === null || key.expires_at > clock.now().getTime();
}

/** The system's code of a failed file operation, such as `EACCES`. */
function errorCode(error: unknown): string | null {
  return typeof error === "object" && error !== null && "code" in error ? String(error.code) : null;
}
