import type { IncomingMessage, ServerResponse } from "node:http";
import type { Clock } from "@devmesh/service-kit/clock";
import { keepsOwnTime } from "./connection.ts";
import { ClientGone, type Upload } from "./exchange.ts";
import { RequestRefused } from "./gateway-errors.ts";

/** Longest time of an upload, in milliseconds. */
const longestMs = 15 * 60_000;

interface UploadOptions {
  /** Media type of the body. */
  readonly type: string;
  readonly clock: Clock;
}

/** The body of an upload, whose time `requestTimeout` does not bound. Throws `unsupported_media_type`. */
export function openUpload(
  request: IncomingMessage,
  response: ServerResponse,
  { type, clock }: UploadOptions,
): Upload {
  const { headers } = request;
  const given = headers["content-type"]?.split(";")[0]?.trim().toLowerCase();
  if (given !== type || (headers["content-encoding"] ?? "identity") !== "identity")
    throw new RequestRefused("unsupported_media_type", {
      detail: `The body must be \`${type}\`, not compressed.`,
    });
  const length = headers["content-length"];
  keepsOwnTime(request);
  return {
    declaredBytes: length === undefined ? undefined : Number(length),
    async *pieces(pieceBytes) {
      if (headers.expect?.toLowerCase() === "100-continue") response.writeContinue();
      let chunks: Buffer[] = [];
      let size = 0;
      const late = Promise.withResolvers<never>();
      late.promise.catch(() => undefined);
      const cancel = clock.schedule(longestMs, () => late.reject(new RequestRefused("request_incomplete")));
      try {
        // The answer to a refused body goes over the same connection.
        const received = request.iterator({ destroyOnReturn: false });
        for (;;) {
          const next: IteratorResult<Buffer> = await Promise.race([received.next(), late.promise]);
          if (next.done) break;
          const chunk = next.value;
          chunks.push(chunk);
          size += chunk.length;
          while (size >= pieceBytes) {
            const whole = Buffer.concat(chunks);
            yield whole.subarray(0, pieceBytes);
            chunks = [whole.subarray(pieceBytes)];
            size -= pieceBytes;
          }
        }
      } catch (cause) {
        if (request.destroyed && !request.complete) throw new ClientGone("the body was cut", { cause });
        throw cause;
      } finally {
        cancel();
      }
      if (size > 0) yield Buffer.concat(chunks);
    },
  };
}
