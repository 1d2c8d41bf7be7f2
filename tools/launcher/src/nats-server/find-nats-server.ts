import { systemErrorCode } from "../process/system-error.ts";
import { cachedBinary, putIntoCache } from "./binary-cache.ts";
import { type GoProgram, goInstall } from "./go-install.ts";
import { executablesOnPath, isExecutable } from "./path-search.ts";
import { RELEASE_URL, releaseArchive } from "./release-archive.ts";
import { type DownloadPatience, downloadRelease } from "./release-download.ts";
import { PINNED_VERSION, reasonAgainst, versionOf } from "./supported-version.ts";

/** What the look-up found: a server that somebody else runs, or a binary to start. */
export type NatsServer =
  | { readonly kind: "running"; readonly url: string }
  | {
      readonly kind: "binary";
      readonly path: string;
      readonly from: "NATS_SERVER_BIN" | "PATH" | "cache" | "download" | "go install";
    };

/** What the look-up may use; each has the obvious default. */
export interface LookUp {
  readonly env: NodeJS.ProcessEnv;
  /** Told about each step that takes time or was tried in vain. */
  readonly say?: (sentence: string) => void;
  readonly platform?: string;
  readonly architecture?: string;
  readonly patience?: DownloadPatience;
  /** Ends the look-up: what it downloads or builds is given up, and it rejects. */
  readonly signal?: AbortSignal;
}

const GO_PROGRAM: GoProgram = {
  module: `github.com/nats-io/nats-server/v2@v${PINNED_VERSION}`,
  binary: "nats-server",
};

/** No nats-server can be had; the message is one sentence a user can act on. */
export class NatsServerNotFound extends Error {
  override readonly name = "NatsServerNotFound";
}

/**
 * Finds nats-server, in the order of architecture.md, How it starts: `NATS_URL`, `NATS_SERVER_BIN`, PATH, the cache,
 * a release download (`NATS_SERVER_DOWNLOAD_URL` names a mirror), `go install`. The last two fill the cache. Throws
 * {@link NatsServerNotFound}; a `NATS_SERVER_BIN` that is unfit is not passed over in silence. Leaves nothing running
 * or half-written when `signal` fires, and rejects with its reason.
 */
export async function findNatsServer(lookUp: LookUp): Promise<NatsServer> {
  const { env, say = () => {} } = lookUp;
  if (env.NATS_URL) return { kind: "running", url: env.NATS_URL };
  if (env.NATS_SERVER_BIN) return named(env.NATS_SERVER_BIN);

  const onPath = await fromPath(env.PATH, say);
  if (onPath) return { kind: "binary", path: onPath, from: "PATH" };

  const cached = cachedBinary(env);
  if ((await isExecutable(cached)) && (await unfit(cached)) === null)
    return { kind: "binary", path: cached, from: "cache" };

  const failures: string[] = [];
  if (await downloaded(lookUp, cached, failures, say))
    return { kind: "binary", path: cached, from: "download" };
  if (await built(lookUp, cached, failures, say)) return { kind: "binary", path: cached, from: "go install" };
  throw new NatsServerNotFound(
    `nats-server ${PINNED_VERSION} was not found on PATH and could not be fetched (${failures.join("; ")}): ` +
      "install it, or name its binary in NATS_SERVER_BIN.",
  );
}

async function named(binary: string): Promise<NatsServer> {
  const reason = await unfit(binary);
  if (reason)
    throw new NatsServerNotFound(`NATS_SERVER_BIN names ${binary}, which cannot be used: ${reason}.`);
  return { kind: "binary", path: binary, from: "NATS_SERVER_BIN" };
}

async function fromPath(path: string | undefined, say: (sentence: string) => void): Promise<string | null> {
  for (const candidate of await executablesOnPath("nats-server", path)) {
    const reason = await unfit(candidate);
    if (reason === null) return candidate;
    say(`${candidate} is not used: ${reason}.`);
  }
  return null;
}

async function downloaded(
  { env, platform = process.platform, architecture = process.arch, patience, signal }: LookUp,
  cached: string,
  failures: string[],
  say: (sentence: string) => void,
): Promise<boolean> {
  const archive = releaseArchive(platform, architecture);
  if (!archive) {
    failures.push(`no release is published for ${platform} on ${architecture}`);
    return false;
  }
  const base = env.NATS_SERVER_DOWNLOAD_URL || RELEASE_URL;
  say(`Downloading nats-server ${PINNED_VERSION} from ${base}.`);
  return attempt(failures, say, signal, () =>
    putIntoCache(cached, async (unfinished) => {
      await downloadRelease(base, archive, unfinished, { patience, signal });
      await mustBeFit(unfinished);
    }),
  );
}

async function built(
  { env, signal }: LookUp,
  cached: string,
  failures: string[],
  say: (sentence: string) => void,
): Promise<boolean> {
  const [go] = await executablesOnPath("go", env.PATH);
  if (!go) {
    failures.push("Go is not installed to build it");
    return false;
  }
  say(`Building nats-server ${PINNED_VERSION} with ${go} (once, about a minute).`);
  return attempt(failures, say, signal, () =>
    putIntoCache(cached, async (unfinished) => {
      await goInstall(go, GO_PROGRAM, unfinished, env, signal);
      await mustBeFit(unfinished);
    }),
  );
}

async function attempt(
  failures: string[],
  say: (sentence: string) => void,
  signal: AbortSignal | undefined,
  step: () => Promise<void>,
): Promise<boolean> {
  try {
    await step();
    return true;
  } catch (error) {
    signal?.throwIfAborted();
    const reason = error instanceof Error ? error.message : String(error);
    failures.push(reason);
    say(`That failed: ${reason}.`);
    return false;
  }
}

async function unfit(binary: string): Promise<string | null> {
  try {
    return reasonAgainst(await versionOf(binary));
  } catch (error) {
    return systemErrorCode(error) === "ENOENT" ? "there is no such file" : "it cannot be run as nats-server";
  }
}

async function mustBeFit(binary: string): Promise<void> {
  const reason = await unfit(binary);
  if (reason) throw new Error(`what was fetched cannot be used: ${reason}`);
}
