import { isUtf8 } from "node:buffer";
import type { IncomingMessage, ServerResponse } from "node:http";
import { hasFiniteNumbers, isDeeperThan, type Json, maxJsonDepth } from "@devmesh/contracts/model/json";
import { RequestRefused } from "./gateway-errors.ts";

/** Most bytes of a body (api.md, Conventions). */
const maxBodyBytes = 512 * 1024;

/** The client went away before its request was complete: there is nobody to answer. */
export class ClientGone extends Error {
  override readonly name = "ClientGone";
}

/**
 * The JSON body of a request; undefined when there is none. Throws `unsupported_media_type`, `body_too_large`,
 * `body_malformed` and `body_too_deep`, and `ClientGone` when the connection ends in the middle.
 */
export async function readJsonBody(
  request: IncomingMessage,
  response: ServerResponse,
): Promise<Json | undefined> {
  const { headers } = request;
  const declared = headers["content-length"];
  const chunked = headers["transfer-encoding"] !== undefined;
  if (!chunked && (declared === undefined || declared === "0")) return undefined;
  const typed = isJson(headers["content-type"]) && isPlain(headers["content-encoding"]);
  if (!chunked && !typed) throw new RequestRefused("unsupported_media_type");
  if (declared !== undefined && Number(declared) > maxBodyBytes) throw new RequestRefused("body_too_large");
  // A client that asks before it sends a large body is let to send only what will be read.
  if (headers.expect?.toLowerCase() === "100-continue") response.writeContinue();
  const bytes = await readBytes(request);
  if (bytes.length === 0) return undefined;
  if (!typed) throw new RequestRefused("unsupported_media_type");
  return parseJson(bytes);
}

function parseJson(bytes: Buffer): Json {
  if (!isUtf8(bytes)) throw new RequestRefused("body_malformed");
  const text = bytes.toString("utf8");
  let value: Json;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new RequestRefused("body_malformed", { cause });
  }
  // Short bodies cannot be that deep, so most are not looked through.
  if (bytes.length > 2 * maxJsonDepth && isDeeperThan(value, maxJsonDepth)) {
    throw new RequestRefused("body_too_deep");
  }
  if ((bytes.length > longestInRange || largeExponent.test(text)) && !hasFiniteNumbers(value)) {
    throw new RequestRefused("body_malformed", {
      detail: "A number of the body is beyond the range of a double (RFC 8259, 6).",
    });
  }
  if (surrogateEscape.test(text) && !isWellFormed(value)) {
    throw new RequestRefused("body_malformed", {
      detail: "A text of the body holds half of a surrogate pair, which UTF-8 cannot write.",
    });
  }
  if (bytes.length * mostGrowth > maxBodyBytes && smallExponent.test(text) && isTooLargeAgain(value)) {
    throw new RequestRefused("body_too_large", {
      detail: "The body exceeds 512 KB when its numbers are written without exponents.",
    });
  }
  return value;
}

/** Numbers that JSON is written with more digits for than they came with: 1e20. */
const smallExponent = /\de[+-]?\d/i;
/** By how much a body of such numbers can grow. */
const mostGrowth = 6;

/** Whether the body would be too large in the form in which it goes to its owner, which the broker would not carry. */
function isTooLargeAgain(value: Json): boolean {
  return Buffer.byteLength(JSON.stringify(value)) > maxBodyBytes;
}

/** How short text can hold a number beyond the range of a double; with a smaller exponent it takes more digits than this. */
const largeExponent = /\de\+?\d{3}/i;
const longestInRange = 200;

/** How UTF-8 text can hold half of a surrogate pair all the same. */
const surrogateEscape = /\\ud[89a-f]/i;

/** Whether UTF-8 can write all texts of a value: a store would keep another character than the answer showed. */
function isWellFormed(value: Json): boolean {
  if (typeof value === "string") return value.isWellFormed();
  if (typeof value !== "object" || value === null) return true;
  return Object.entries(value).every(([name, member]) => name.isWellFormed() && isWellFormed(member));
}

function readBytes(request: IncomingMessage): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    const settle = (end: () => void) => {
      request.off("data", onData).off("end", onEnd).off("error", onGone).off("close", onGone);
      end();
    };
    const onData = (chunk: Buffer) => {
      size += chunk.length;
      if (size <= maxBodyBytes) chunks.push(chunk);
      else settle(() => reject(new RequestRefused("body_too_large")));
    };
    const onEnd = () =>
      settle(() => resolve(chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks)));
    const onGone = () => settle(() => reject(new ClientGone()));
    request.on("data", onData).on("end", onEnd).on("error", onGone).on("close", onGone);
  });
}

const jsonType = /^application\/(json|[a-z0-9!#$&^_.-]+\+json)\s*(;|$)/i;
const otherCharset = /;\s*charset\s*=(?!\s*"?utf-8"?\s*(;|$))/i;

/** A body without a declared type is taken as JSON: the specification only recommends the header. */
function isJson(contentType: string | undefined): boolean {
  return contentType === undefined || (jsonType.test(contentType) && !otherCharset.test(contentType));
}

function isPlain(contentEncoding: string | undefined): boolean {
  return contentEncoding === undefined || contentEncoding.toLowerCase() === "identity";
}
