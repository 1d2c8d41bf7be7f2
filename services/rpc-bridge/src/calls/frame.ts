import { isJsonObject, type Json, type JsonObject } from "@devmesh/contracts/model/json";
import type { CallFrame } from "@devmesh/contracts/mqtt";
import { type JsonPayload, parseJsonPayload } from "../json-payload.ts";

/** What a device answered to a call. */
export type DeviceReply =
  | { readonly kind: "result"; readonly result: Json }
  | { readonly kind: "no_such_function" }
  | { readonly kind: "error"; readonly code: number; readonly message: string }
  /** Only the id is readable, or the result is too large or has a number that no double holds. */
  | { readonly kind: "unreadable" };

/** A reply and the call it belongs to. */
export interface ReplyFrame {
  readonly id: number;
  readonly reply: DeviceReply;
}

/** Codes for an unknown function: Mongoose OS, and JSON-RPC 2.0. */
const noSuchFunction: readonly number[] = [404, -32601];

/** Characters of a device's error message that are passed on. */
const maxMessageLength = 1_024;

/** Bytes of the largest result that the mesh can carry (ADR 19). */
const maxResultBytes = 512 * 1024;

/** A reply of so many bytes stays below `maxResultBytes` when it is serialised again, even if it consists of `1e20`. */
const certainlySmallBytes = 64 * 1024;

/** The bytes to send, or null when they are more than `maxBytes`. */
export function encodeRequest({ id, src, method, params }: CallFrame, maxBytes: number): Buffer | null {
  const frame = params === undefined ? { id, src, method } : { id, src, method, params };
  const bytes = Buffer.from(JSON.stringify(frame));
  return bytes.length > maxBytes ? null : bytes;
}

/**
 * Reads a reply; null without a readable id. Other members (`src`, `dst`, `tag`, `jsonrpc`) are ignored.
 */
export function parseReply(payload: Buffer): ReplyFrame | null {
  const parsed = parseJsonPayload(payload);
  if (parsed === undefined) return salvageId(payload);
  const { value: frame, changed } = parsed;
  if (!isJsonObject(frame)) return null;
  const id = replyId(frame.id);
  return id === null ? null : { id, reply: readReply(frame, changed, payload.length) };
}

function readReply(frame: JsonObject, changed: JsonPayload["changed"], bytes: number): DeviceReply {
  const { error, result = null } = frame;
  if (error !== undefined && error !== null) return readError(error);
  const isChanged = changed.some(({ pointer }) => /^\/result(\/|$)/.test(pointer));
  if (isChanged || (bytes > certainlySmallBytes && isTooLarge(result))) return { kind: "unreadable" };
  return { kind: "result", result };
}

function readError(error: Json): DeviceReply {
  if (!isJsonObject(error)) return { kind: "unreadable" };
  const code = errorCode(error.code);
  if (code === null) return { kind: "unreadable" };
  // Mongoose OS answers so where a function did what it was asked and has no result, such as Sys.SetDebug.
  if (error.code === 0 && errorMessage(error.message) === "") return { kind: "result", result: null };
  if (noSuchFunction.includes(code)) return { kind: "no_such_function" };
  return { kind: "error", code, message: errorMessage(error.message) };
}

/** Some firmware prints its numbers as text or as floats. */
function errorCode(code: Json | undefined): number | null {
  const number = typeof code === "string" && code.trim() !== "" ? Number(code) : code;
  if (typeof number !== "number") return null;
  const integer = Math.trunc(number);
  return Number.isSafeInteger(integer) ? integer + 0 : null;
}

function errorMessage(message: Json | undefined): string {
  if (message === undefined || message === null) return "";
  const text = typeof message === "string" ? message : JSON.stringify(message);
  return text.slice(0, maxMessageLength).toWellFormed();
}

function replyId(id: Json | undefined): number | null {
  const number = typeof id === "string" && /^\d{1,10}$/.test(id) ? Number(id) : id;
  return typeof number === "number" && Number.isInteger(number) ? number : null;
}

/** Finds the id in a reply with `nan` or one that firmware truncated. */
function salvageId(payload: Buffer): ReplyFrame | null {
  const start = payload.subarray(0, 256).toString("latin1");
  const id = /^\s*\{\s*"id"\s*:\s*"?(\d{1,10})"?\s*[,}]/.exec(start)?.[1];
  return id === undefined ? null : { id: Number(id), reply: { kind: "unreadable" } };
}

function isTooLarge(result: Json): boolean {
  return Buffer.byteLength(JSON.stringify({ result })) > maxResultBytes;
}
