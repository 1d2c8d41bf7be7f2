import type { jobs } from "@devmesh/contracts/jobs";
import { type Firmware, firmwareBounds } from "@devmesh/contracts/model/firmware";
import type { Clock } from "@devmesh/service-kit/clock";
import { type Metrics, metricsOn } from "@devmesh/service-kit/metrics";
import { createCallContext } from "@devmesh/service-kit/rpc/context";
import type { Client } from "@devmesh/service-kit/rpc/implementation";
import { type BytePart, partOf } from "../http/byte-range.ts";
import type { Reply } from "../http/exchange.ts";
import { PieceCache } from "./piece-cache.ts";

const { pieceBytes } = firmwareBounds;

/** How long the reading of a piece may take, in milliseconds; all who wait for it share it. */
const readMs = 5_000;

/** Bytes that a client is sent at a time: what a slow one keeps in memory. */
const sliceBytes = 64 * 1024;

export interface FirmwareContentOptions {
  readonly jobs: Client<typeof jobs, "readContent">;
  readonly cacheBytes: number;
  readonly metrics: Metrics;
  readonly clock: Clock;
}

/** What a sent content is counted as, and who follows it. */
interface ContentOptions {
  readonly via: "key" | "ticket";
  /** Called when the client has taken the bytes from one position to before another; what it throws cuts the answer. */
  readonly onSent?: (from: number, to: number) => void;
}

/** Answers a request for a file, or a range of it. */
export type AnswerContent = (
  request: Parameters<typeof partOf>[0],
  firmware: Pick<Firmware, "id" | "sha256" | "md5" | "size">,
  options: ContentOptions,
) => Reply;

/** Sends contents of firmware, from a cache of their pieces. */
export function createFirmwareContent(options: FirmwareContentOptions): AnswerContent {
  const { jobs, cacheBytes, metrics, clock } = options;
  const { counter } = metricsOn(metrics.registry);
  const hits = counter("devmesh_firmware_cache_hits_total", "Pieces of firmware that were sent from memory.");
  const sent = counter("devmesh_firmware_bytes_sent_total", "Bytes of firmware that were sent.", "via");
  const cache = new PieceCache({
    maxBytes: cacheBytes,
    pieceBytes,
    async read(id, number) {
      using call = createCallContext({ timeoutMs: readMs, clock });
      return Buffer.from((await jobs.readContent({ id, number }, call)).data, "base64");
    },
    onHit: () => hits.inc(),
  });

  async function* bytesOf(
    firmware: Pick<Firmware, "id" | "sha256">,
    { start, end }: BytePart,
    { via, onSent }: ContentOptions,
  ): AsyncGenerator<Uint8Array, void, undefined> {
    for (let at = start; at < end; ) {
      const piece = await cache.get(firmware, Math.floor(at / pieceBytes));
      const from = at % pieceBytes;
      // A copy: a slow client must not keep the whole piece in memory.
      const slice = Buffer.from(piece.subarray(from, Math.min(from + sliceBytes, from + end - at)));
      if (slice.length === 0) throw new Error("a piece of firmware is too short");
      yield slice;
      sent.inc({ via }, slice.length);
      onSent?.(at, at + slice.length);
      at += slice.length;
    }
  }

  return (request, firmware, options) => {
    const part = partOf(request, { etag: `"${firmware.sha256}"`, size: firmware.size });
    const { sha256, md5 } = firmware;
    const headers = {
      "Content-Type": "application/octet-stream",
      ...part.headers,
      "x-SHA256": sha256,
      ...(md5 !== null && { "x-MD5": md5 }),
    };
    return { status: part.status, headers, body: bytesOf(firmware, part, options) };
  };
}
