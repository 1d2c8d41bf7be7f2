import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { FunctionError } from "../function-error.ts";
import { type Downloaded, download } from "./download.ts";
import { digestOf, versionOf } from "./image.ts";
import { PushedImage } from "./pushed-image.ts";
import type { UpdateBehaviour } from "./update-behaviour.ts";

/** Default pauses of a behaviour, in milliseconds. */
const defaultPieceMs = 150;
const defaultBootMs = 3_000;
/** Time for the last answer before the device boots, and that of a lost network. */
const answerMs = 200;
const lostMs = 2_000;

const Update = z.object({ url: z.url(), commit_timeout: z.number().min(0).default(0) });
const Desired = z.object({ url: z.url(), sha256: z.string().optional() });

/** What the firmware does with its device. */
interface FirmwareHost {
  /** Changes `reported.ota`; null deletes a member. */
  report(change: Readonly<Record<string, string | number | null>>): void;
  /** Cuts the connection, which comes back by itself. */
  drop(): void;
  /** Disconnects for a time; resolves when it is connected again. */
  boot(awayMs: number): Promise<void>;
}

export interface DeviceFirmwareOptions {
  readonly version: string;
  readonly behaviour: UpdateBehaviour;
  readonly host: FirmwareHost;
  readonly signal: AbortSignal;
}

/** Firmware that can be updated: by URL, by the shadow and by calls. */
export interface DeviceFirmware {
  /** What runs now. */
  readonly version: string;
  readonly functions: Readonly<Record<string, (params: unknown) => unknown>>;
  /** Takes `desired.ota`; one whose URL was tried is ignored. */
  desire(ota: unknown): void;
}

/** The firmware of a simulated device. A version that is not committed in the time that was asked for goes back. */
export function createDeviceFirmware(options: DeviceFirmwareOptions): DeviceFirmware {
  const { behaviour, host, signal } = options;
  const { pieceMs = defaultPieceMs, writeMs = 0, bootMs = defaultBootMs } = behaviour;
  let { version } = options;
  let triedUrl: string | undefined;
  let isFetching = false;
  let hasDropped = false;
  let reverting: AbortController | undefined;
  const pushed = new PushedImage(behaviour.takesOffset === true);

  /** Reports each tenth. */
  function progress(before: number, now: number, size: number): void {
    const tenthOf = (bytes: number) => Math.floor((10 * bytes) / size);
    if (tenthOf(before) < tenthOf(now)) host.report({ percent: 10 * tenthOf(now) });
  }

  /** Whether the device loses its connections now. */
  function loses(bytes: number, size: number): boolean {
    if (!behaviour.drops || hasDropped || bytes < size / 2) return false;
    hasDropped = true;
    host.drop();
    return true;
  }

  async function fetchImage(url: string, sha256?: string): Promise<Buffer> {
    if (isFetching) throw new Error("an update is in progress");
    isFetching = true;
    let before = 0;
    try {
      const { image, etag }: Downloaded = await download({
        url,
        signal,
        async onProgress(bytes, size) {
          progress(before, bytes, size);
          before = bytes;
          await sleep(loses(bytes, size) ? lostMs : pieceMs, undefined, { signal });
        },
      });
      const expected = sha256 ?? /^"([0-9a-f]{64})"$/.exec(etag ?? "")?.[1];
      if (expected !== undefined && digestOf(image) !== expected) throw new Error("the image is damaged");
      return image;
    } finally {
      isFetching = false;
    }
  }

  async function boot(next: string): Promise<void> {
    version = next;
    hasDropped = false;
    await host.boot(bootMs);
    host.report({ fw_version: version, percent: null, code: null, message: null });
  }

  /** Boots an image after the answer to the last call, and goes back where nobody commits it in so many seconds. */
  async function install(image: Buffer, commitTimeout: number): Promise<void> {
    const old = version;
    const own = versionOf(image);
    await sleep(answerMs, undefined, { signal });
    reverting?.abort();
    if (behaviour.rollsBack) return boot(old);
    await boot(behaviour.reportsOther ? `${own}-other` : own);
    if (commitTimeout === 0) return;
    reverting = new AbortController();
    const isDue = await sleep(commitTimeout * 1_000, true, {
      signal: AbortSignal.any([signal, reverting.signal]),
    }).catch(() => false);
    if (!isDue) return;
    reverting.abort();
    await boot(old);
  }

  function installSoon(image: Buffer, commitTimeout: number): void {
    // It ends early where the device is stopped.
    install(image, commitTimeout).catch(() => undefined);
  }

  return {
    get version() {
      return version;
    },
    functions: {
      async "OTA.Update"(params) {
        const given = Update.safeParse(params);
        if (!given.success) throw new FunctionError(400, "Invalid parameters");
        const { url, commit_timeout } = given.data;
        installSoon(await fetchImage(url).catch(asFunctionError), commit_timeout);
        return true;
      },
      "OTA.Begin": (params) => pushed.begin(params),
      async "OTA.Write"(params) {
        if (writeMs > 0) await sleep(writeMs, undefined, { signal });
        const before = pushed.length;
        const answer = pushed.write(params);
        progress(before, pushed.length, pushed.size);
        if (loses(pushed.length, pushed.size)) return new Promise<never>(() => undefined);
        return answer;
      },
      "OTA.End"() {
        const { image, commitTimeout } = pushed.end();
        installSoon(image, commitTimeout);
        return true;
      },
      "OTA.Commit"() {
        reverting?.abort();
        return true;
      },
      "OTA.GetBootState": () => ({ is_committed: reverting?.signal.aborted !== false }),
    },
    desire(ota) {
      const { url, sha256 } = Desired.safeParse(ota).data ?? {};
      if (url === undefined || url === triedUrl) return;
      triedUrl = url;
      fetchImage(url, sha256).then(
        (image) => installSoon(image, 0),
        (error: Error) => host.report({ code: 500, message: error.message }),
      );
    },
  };
}

function asFunctionError(cause: unknown): never {
  throw new FunctionError(500, cause instanceof Error ? cause.message : "failed");
}
