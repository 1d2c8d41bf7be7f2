import { isUtf8 } from "node:buffer";
import type { IncomingMessage, ServerResponse } from "node:http";
import { hasFiniteNumbers, type Json, maxJsonDepth } from "@devmesh/contracts/model/json";
import type { Charge } from "../auth/rate-limit.ts";
import { RequestRefused } from "./gateway-errors.ts";
import { outlineOf } from "./json-outline.ts";
import type { UnfinishedBody } from "./unfinished-bodies.ts";

/** Most bytes of a body (api.md, Conventions). */
export const maxBodyBytes = 512 * 1024;

/**
 * Bytes of a body for each token that it costs beyond the one of its request (api.md, Conventions). 4 KB of a body
 * with many short members take about 1 ms of CPU in all services, as much as a small request.
 */
const bytesPerToken = 4 * 1024;

/**
 * Most members of all objects of a body. What any route accepts has fewer: within the bounds of a device, a patch that
 * deletes each member and sets as many others has some 18,000.
 */
const maxBodyMembers = 20_000;

/** The client went away before its request was complete: there is nobody to answer. */
export class ClientGone extends Error {
  override readonly name = "ClientGone";
}

/** Where a body is accounted for. */
export interface BodyAccounts {
  readonly charge: Charge;
  /** Counts the body while it is not whole; `refuse` ends its reading. */
  readonly begin: (refuse: (refusal: RequestRefused) => void) => UnfinishedBody;
}

/**
 * The JSON body of a request; undefined when there is none. Throws `unsupported_media_type`, `body_too_large`,
 * `body_malformed`, `body_too_deep`, `too_many_bodies`, `request_incomplete` and what `charge` throws; `ClientGone`
 * when the connection ends in the middle.
 */
export async function readJsonBody(
  request: IncomingMessage,
  response: ServerResponse,
  { charge, begin }: BodyAccounts,
): Promise<Json | undefined> {
  const { headers } = request;
  const declared = headers["content-length"];
  const chunked = headers["transfer-encoding"] !== undefined;
  if (!chunked && (declared === undefined || declared === "0")) return undefined;
  const typed = isJson(headers["content-type"]) && isPlain(headers["content-encoding"]);
  if (!chunked && !typed) throw new RequestRefused("unsupported_media_type");
  if (declared !== undefined && Number(declared) > maxBodyBytes) throw new RequestRefused("body_too_large");
  if (declared !== undefined) chargeFor(Number(declared), charge);
  // A client that asks before it sends a large body is let to send only what will be read.
  if (headers.expect?.toLowerCase() === "100-continue") response.writeContinue();
  const bytes = await readBytes(request, begin);
  if (bytes.length === 0) return undefined;
  if (declared === undefined) chargeFor(bytes.length, charge);
  if (!typed) throw new RequestRefused("unsupported_media_type");
  return parseJson(bytes);
}

/** Charges for a body before it is read, or before it is parsed where its length is not declared. */
function chargeFor(bytes: number, charge: Charge): void {
  const tokens = Math.floor(bytes / bytesPerToken);
  if (tokens > 0) charge(tokens);
}

function parseJson(bytes: Buffer): Json {
  if (!isUtf8(bytes)) throw new RequestRefused("body_malformed");
  const { depth, members, longestDigits } = outlineOf(bytes);
  if (depth > maxJsonDepth) throw new RequestRefused("body_too_deep");
  if (members > maxBodyMembers) {
    throw new RequestRefused("body_too_large", { detail: "The body holds more than 20,000 members." });
  }
  const text = bytes.toString("utf8");
  let value: Json;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new RequestRefused("body_malformed", { cause });
  }
  if ((longestDigits > longestInRange || largeExponent.test(text)) && !hasFiniteNumbers(value)) {
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

/**
 * How a number beyond the range of a double is written; with a smaller exponent it has more digits than
 * `longestInRange`.
 */
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

function readBytes(request: IncomingMessage, begin: BodyAccounts["begin"]): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    let unfinished: UnfinishedBody | undefined;
    const settle = (end: () => void) => {
      request.off("data", onData).off("end", onEnd).off("error", onGone).off("close", onGone);
      clearImmediate(counting);
      unfinished?.end();
      end();
    };
    const refuse = (refusal: RequestRefused) => settle(() => reject(refusal));
    const onData = (chunk: Buffer) => {
      size += chunk.length;
      if (size > maxBodyBytes) return refuse(new RequestRefused("body_too_large"));
      chunks.push(chunk);
      unfinished?.received(chunk.length);
    };
    const onEnd = () =>
      settle(() => resolve(chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks)));
    const onGone = () => settle(() => reject(new ClientGone()));
    request.on("data", onData).on("end", onEnd).on("error", onGone).on("close", onGone);
    // A body that came in one piece with its head is whole by then, and is never counted.
    const counting = setImmediate(() => {
      unfinished = begin(refuse);
      unfinished.received(size);
    });
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
