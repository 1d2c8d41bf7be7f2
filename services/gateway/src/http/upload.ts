import type { IncomingMessage, ServerResponse } from "node:http";
import { ClientGone, type Upload } from "./exchange.ts";
import { RequestRefused } from "./gateway-errors.ts";

/** The body of a request of a media type. Throws `unsupported_media_type`. */
export function openUpload(request: IncomingMessage, response: ServerResponse, type: string): Upload {
  const { headers } = request;
  const given = headers["content-type"]?.split(";")[0]?.trim().toLowerCase();
  if (given !== type || (headers["content-encoding"] ?? "identity") !== "identity")
    throw new RequestRefused("unsupported_media_type", {
      detail: `The body must be \`${type}\`, not compressed.`,
    });
  const length = headers["content-length"];
  return {
    declaredBytes: length === undefined ? undefined : Number(length),
    async *pieces(pieceBytes) {
      if (headers.expect?.toLowerCase() === "100-continue") response.writeContinue();
      let chunks: Buffer[] = [];
      let size = 0;
      try {
        // The answer to a refused body goes over the same connection.
        for await (const chunk of request.iterator({ destroyOnReturn: false })) {
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
        // What is left of a body that was refused is dropped, since its client sends it before it reads the answer.
        request.resume();
      }
      if (size > 0) yield Buffer.concat(chunks);
    },
  };
}
