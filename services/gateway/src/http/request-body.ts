import { isUtf8 } from "node:buffer";
import type { IncomingMessage, ServerResponse } from "node:http";
import { checkNumbers } from "@devmesh/contracts/model/exact-numbers";
import { type Json, maxJsonDepth, repeatedMember } from "@devmesh/contracts/model/json";
import { pointerToken } from "@devmesh/contracts/model/json-pointer";
import { ViolationList } from "@devmesh/contracts/model/violation";
import { type Charge, ClientGone } from "./exchange.ts";
import { invalidRequest, RequestRefused } from "./gateway-errors.ts";
import { outlineOf } from "./json-bytes.ts";
import type { UnfinishedBody } from "./unfinished-bodies.ts";

/** Most bytes of a body (api.md, Conventions). */
export const maxBodyBytes = 512 * 1024;

/**
 * Bytes of a body per rate token beyond the one of its request (api.md, Conventions). 4 KB with many short members take
 * about 1 ms of CPU in all services, as much as a small request.
 */
const bytesPerToken = 4 * 1024;

/** Most members in a body. The largest valid one, a patch that replaces every member of a device, has some 18,000. */
const maxBodyMembers = 20_000;

export interface BodyReadOptions {
  readonly charge: Charge;
  /** Whether a member that an object has twice is refused. */
  readonly membersOnce: boolean;
  /** Counts the body while it is incomplete; `refuse` stops the reading. */
  readonly begin: (refuse: (refusal: RequestRefused) => void) => UnfinishedBody;
}

/**
 * The JSON body of a request; undefined when there is none. Throws the refusals of bodies, what `charge` throws, and
 * `ClientGone` when the connection ends before the body does.
 */
export async function readJsonBody(
  request: IncomingMessage,
  response: ServerResponse,
  { charge, membersOnce, begin }: BodyReadOptions,
): Promise<Json | undefined> {
  const { headers } = request;
  const declared = headers["content-length"];
  const chunked = headers["transfer-encoding"] !== undefined;
  if (!chunked && (declared === undefined || declared === "0")) return undefined;
  const typed = isJson(headers["content-type"]) && isPlain(headers["content-encoding"]);
  if (!chunked && !typed) throw new RequestRefused("unsupported_media_type");
  if (declared !== undefined && Number(declared) > maxBodyBytes) throw new RequestRefused("body_too_large");
  if (declared !== undefined) chargeFor(Number(declared), charge);
  if (headers.expect?.toLowerCase() === "100-continue") response.writeContinue();
  const bytes = await readBytes(request, begin);
  if (bytes.length === 0) return undefined;
  if (declared === undefined) chargeFor(bytes.length, charge);
  if (!typed) throw new RequestRefused("unsupported_media_type");
  const value = parseJson(bytes);
  const repeated = membersOnce ? repeatedMember(bytes.toString("utf8")) : null;
  if (repeated !== null)
    throw invalidRequest([{ pointer: repeated.map(pointerToken).join(""), detail: "must be given once" }]);
  return value;
}

function chargeFor(bytes: number, charge: Charge): void {
  const tokens = Math.floor(bytes / bytesPerToken);
  if (tokens > 0) charge(tokens);
}

function parseJson(bytes: Buffer): Json {
  if (!isUtf8(bytes)) throw new RequestRefused("body_malformed");
  const { depth, members } = outlineOf(bytes);
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
  const violations = new ViolationList();
  checkNumbers(text, violations);
  if (violations.any) throw invalidRequest(violations.list, "body_malformed");
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

/** A number that JSON.stringify writes with more characters: 1e20. */
const smallExponent = /\de[+-]?\d/i;
/** Largest growth of a body by such numbers. */
const mostGrowth = 6;

/** Whether the body is too large for the broker in the form in which it goes to its owner. */
function isTooLargeAgain(value: Json): boolean {
  return Buffer.byteLength(JSON.stringify(value)) > maxBodyBytes;
}

/** An escape by which JSON in UTF-8 can hold half of a surrogate pair. */
const surrogateEscape = /\\ud[89a-f]/i;

/** Whether UTF-8 can encode all texts of a value; otherwise a store would keep another character. */
function isWellFormed(value: Json): boolean {
  if (typeof value === "string") return value.isWellFormed();
  if (typeof value !== "object" || value === null) return true;
  return Object.entries(value).every(([name, member]) => name.isWellFormed() && isWellFormed(member));
}

function readBytes(request: IncomingMessage, begin: BodyReadOptions["begin"]): Promise<Buffer> {
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
    // A body that arrives together with its headers is complete by then, and is never counted.
    const counting = setImmediate(() => {
      unfinished = begin(refuse);
      unfinished.received(size);
    });
  });
}

const jsonType = /^application\/(json|[a-z0-9!#$&^_.-]+\+json)\s*(;|$)/i;
/** Another character set than UTF-8, which many programs call `utf8`. */
const otherCharset = /;\s*charset\s*=(?!\s*(utf-?8|"utf-?8")\s*(;|$))/i;

/** A body without a declared type is JSON: api.md only recommends the header. */
function isJson(contentType: string | undefined): boolean {
  return contentType === undefined || (jsonType.test(contentType) && !otherCharset.test(contentType));
}

function isPlain(contentEncoding: string | undefined): boolean {
  return contentEncoding === undefined || contentEncoding.toLowerCase() === "identity";
}
