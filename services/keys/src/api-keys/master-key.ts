import { randomUUID } from "node:crypto";
import { chmod, mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import type { Clock } from "@devmesh/service-kit/clock";
import type { Sealer } from "../store/encryption.ts";
import type { KeyStore } from "../store/key-store.ts";
import type { IdSource } from "../store/sortable-id.ts";
import type { StoredApiKey } from "./api-key-store.ts";
import { openApiKey, sealApiKey } from "./api-keys.ts";
import { createSecret, digestSecret } from "./secret.ts";

/** What the master key of the start is made from. */
export interface MasterKeyOptions {
  readonly store: KeyStore;
  readonly sealer: Sealer;
  readonly clock: Clock;
  readonly newId: IdSource;
  /** `MASTER_KEY`: added when the store does not hold it. */
  readonly preset: string | undefined;
  /** `MASTER_KEY_FILE`. */
  readonly file: string | undefined;
  readonly signal: AbortSignal;
}

/**
 * Makes sure that the account can be reached: a preset master key is there, one is made when none is valid, and the
 * file holds a valid one. The key goes nowhere else. Run at each start.
 */
export async function ensureMasterKey(options: MasterKeyOptions): Promise<void> {
  const { store, clock, preset, file, signal } = options;
  if (preset !== undefined) {
    await store.apiKeys.insert(newMasterKey(options, preset), signal);
    if (!(await isValidMaster(options, preset)))
      throw new Error("MASTER_KEY has expired: choose another one");
  }
  // Of replicas that start at the same time on an empty store, one makes the key that all of them find.
  const made = newMasterKey(options, createSecret("master"));
  const oldest = await store.apiKeys.insertMasterIfNone(made, clock.now().getTime(), signal);
  const secret = preset ?? openApiKey(options.sealer, oldest);
  if (file !== undefined) await writeMasterKey(options, file, secret);
}

function newMasterKey({ sealer, clock, newId }: MasterKeyOptions, secret: string): StoredApiKey {
  const id = newId();
  return {
    id,
    digest: digestSecret(secret),
    sealed: sealApiKey(sealer, id, secret),
    device: null,
    name: null,
    createdAt: clock.now().getTime(),
    lastUsed: null,
    expiresAt: null,
  };
}

/** A file that holds a valid master key is left as it is, so that an operator's choice among several stands. */
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
    // Never half a key, and never readable by others, not even for a moment; replicas may share the folder.
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
  if (key === null || key.device !== null) return false;
  return key.expiresAt === null || key.expiresAt > clock.now().getTime();
}

/** The system's code of a failed file operation, such as `EACCES`. */
function errorCode(error: unknown): string | null {
  return typeof error === "object" && error !== null && "code" in error ? String(error.code) : null;
}
