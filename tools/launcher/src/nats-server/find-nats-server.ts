import { messageOf, StartFailure, systemErrorCode } from "@devmesh/supervisor/process/errors";
import { cachedBinary, putIntoCache } from "./binary-cache.ts";
import { type GoProgram, goInstall } from "./go-install.ts";
import { executablesOnPath, isExecutable } from "./path-search.ts";
import { type DownloadTimeouts, downloadRelease, RELEASE_URL, releaseArchive } from "./release-download.ts";
import { PINNED_VERSION, reasonAgainst, versionOf } from "./supported-version.ts";

/** A binary that runs as nats-server of a supported version. */
export interface NatsServer {
  readonly path: string;
  readonly from: "NATS_SERVER_BIN" | "PATH" | "cache" | "download" | "go install";
}

/** What the search may use. */
export interface NatsServerSearchOptions {
  readonly env: NodeJS.ProcessEnv;
  /** For the user: each step that takes time or failed. */
  readonly log?: (sentence: string) => void;
  readonly platform?: string;
  readonly architecture?: string;
  readonly timeouts?: DownloadTimeouts;
  /** Ends downloads and builds; the search then rejects with its reason. */
  readonly signal?: AbortSignal;
}

const GO_PROGRAM: GoProgram = {
  module: `github.com/nats-io/nats-server/v2@v${PINNED_VERSION}`,
  binary: "nats-server",
};

/**
 * Finds nats-server: `NATS_SERVER_BIN`, PATH, the cache, a release download (`NATS_SERVER_DOWNLOAD_URL`
 * names a mirror), `go install`. The last two fill the cache. Throws {@link StartFailure}, also for a
 * `NATS_SERVER_BIN` that cannot be used.
 */
export async function findNatsServer(options: NatsServerSearchOptions): Promise<NatsServer> {
  const { env, log = () => {}, signal, timeouts } = options;
  const { platform = process.platform, architecture = process.arch } = options;
  if (env.NATS_SERVER_BIN) return named(env.NATS_SERVER_BIN);

  const onPath = await fromPath(env.PATH, log);
  if (onPath) return { path: onPath, from: "PATH" };

  const cached = cachedBinary(env);
  if ((await isExecutable(cached)) && (await unfit(cached)) === null) return { path: cached, from: "cache" };

  const failures: string[] = [];
  const filledCache = async (write: (unfinished: string) => Promise<void>): Promise<boolean> => {
    try {
      await putIntoCache(cached, async (unfinished) => {
        await write(unfinished);
        const reason = await unfit(unfinished);
        if (reason) throw new Error(`what was fetched cannot be used: ${reason}`);
      });
      return true;
    } catch (error) {
      signal?.throwIfAborted();
      failures.push(messageOf(error));
      log(`That failed: ${messageOf(error)}.`);
      return false;
    }
  };

  const archive = releaseArchive(platform, architecture);
  if (archive) {
    const base = env.NATS_SERVER_DOWNLOAD_URL || RELEASE_URL;
    log(`Downloading nats-server ${PINNED_VERSION} from ${base}.`);
    if (await filledCache((file) => downloadRelease(base, archive, file, { timeouts, signal })))
      return { path: cached, from: "download" };
  } else failures.push(`no release is published for ${platform} on ${architecture}`);

  const [go] = await executablesOnPath("go", env.PATH);
  if (go) {
    log(`Building nats-server ${PINNED_VERSION} with ${go} (once, about a minute).`);
    if (await filledCache((file) => goInstall(go, GO_PROGRAM, file, env, signal)))
      return { path: cached, from: "go install" };
  } else failures.push("Go is not installed to build it");

  throw new StartFailure(
    `nats-server ${PINNED_VERSION} was not found on PATH and could not be fetched (${failures.join("; ")}): ` +
      "install it, or name its binary in NATS_SERVER_BIN.",
  );
}

async function named(binary: string): Promise<NatsServer> {
  const reason = await unfit(binary);
  if (reason) throw new StartFailure(`NATS_SERVER_BIN names ${binary}, which cannot be used: ${reason}.`);
  return { path: binary, from: "NATS_SERVER_BIN" };
}

async function fromPath(path: string | undefined, log: (sentence: string) => void): Promise<string | null> {
  for (const candidate of await executablesOnPath("nats-server", path)) {
    const reason = await unfit(candidate);
    if (reason === null) return candidate;
    log(`${candidate} is not used: ${reason}.`);
  }
  return null;
}

async function unfit(binary: string): Promise<string | null> {
  try {
    return reasonAgainst(await versionOf(binary));
  } catch (error) {
    return systemErrorCode(error) === "ENOENT" ? "there is no such file" : "it cannot be run as nats-server";
  }
}
