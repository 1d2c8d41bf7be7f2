import { isDeepStrictEqual } from "node:util";
import { isJsonObject, type Json, type JsonObject } from "@devmesh/contracts/model/json";
import { Violation } from "@devmesh/contracts/model/violation";
import { ClientToken, native, type ShadowUpdateRejected } from "@devmesh/contracts/mqtt";
import { isReason } from "@devmesh/service-kit/errors";
import { z } from "zod";
import { firstOf, parseJsonPayload } from "../json-payload.ts";

/** What a device asks for on `ID/shadow/update` (api.md, MQTT). */
export interface ShadowUpdate {
  /** The payload without `clientToken`; `devices` validates it. */
  readonly patch: JsonObject;
  readonly clientToken?: string;
}

const { maxBytes } = native.topics.shadowUpdate;

export function parseShadowUpdate(payload: Uint8Array): ShadowUpdate | ShadowUpdateRejected {
  if (payload.byteLength > maxBytes) return { code: 413, message: "the update is larger than 256 KB" };
  const parsed = parseJsonPayload(payload);
  if (parsed === undefined) return { code: 400, message: "the payload is not JSON" };
  const { value: update, changed } = parsed;
  if (!isJsonObject(update)) return { code: 400, message: "the payload is not a JSON object" };
  const { clientToken, ...patch } = update;
  const token = tokenMember(clientToken);
  if (clientToken !== undefined && token.clientToken === undefined) {
    return { code: 400, message: "clientToken is not a string of up to 64 bytes" };
  }
  if (!isJsonObject(patch.state))
    return { code: 400, message: "state is missing or not an object", ...token };
  if (changed.length > 0) return { code: 400, message: firstOf(changed), ...token };
  return { patch, ...token };
}

/** The `clientToken` of a payload, if it is readable. */
export function readClientToken(payload: Uint8Array): { clientToken?: string } {
  const request = payload.byteLength > maxBytes ? undefined : parseJsonPayload(payload)?.value;
  return isJsonObject(request) ? tokenMember(request.clientToken) : {};
}

/** Why `devices` refused an update, with text and status of REST. */
export function rejectionOf(error: unknown): Pick<ShadowUpdateRejected, "code" | "message"> {
  if (isReason(error, "invalid_device", "invalid_request"))
    return { code: 400, message: firstViolations(error.details, error.message) };
  if (isReason(error, "shadow_too_large"))
    return { code: 413, message: firstViolations(error.details, error.message) };
  if (isReason(error, "version_conflict"))
    return { code: 409, message: conflict(error.details, error.message) };
  if (isReason(error, "not_writable"))
    return { code: 403, message: firstPointers(error.details, error.message) };
  if (isReason(error, "device_not_found")) return { code: 404, message: error.message };
  if (isReason(error, "unavailable", "deadline_exceeded")) return { code: 503, message: "try again later" };
  return { code: 500, message: "the update could not be applied" };
}

/**
 * Whether a merge patch (RFC 7396) would leave `target` unchanged: a retried update whose `version` no longer matches
 * was then applied before.
 */
export function isMergedIn(target: Json | undefined, patch: Json): boolean {
  if (patch === null) return target === undefined || target === null;
  if (!isJsonObject(patch)) return isDeepStrictEqual(target, patch);
  if (!isJsonObject(target)) return false;
  return Object.entries(patch).every(([name, value]) =>
    isMergedIn(Object.hasOwn(target, name) ? target[name] : undefined, value),
  );
}

function tokenMember(clientToken: Json | undefined): { clientToken?: string } {
  const token = ClientToken.safeParse(clientToken);
  return token.success ? { clientToken: token.data } : {};
}

function firstViolations(details: unknown, otherwise: string): string {
  const list = z.array(Violation).safeParse(details);
  return list.success && list.data.length > 0 ? firstOf(list.data) : otherwise;
}

function firstPointers(details: unknown, otherwise: string): string {
  const refused = z.object({ pointers: z.array(z.string()).min(1) }).safeParse(details);
  if (!refused.success) return otherwise;
  return `${refused.data.pointers.slice(0, 3).join(", ")} may not be written; nothing was applied`;
}

function conflict(details: unknown, otherwise: string): string {
  const current = z.object({ version: z.int() }).safeParse(details);
  return current.success ? `the shadow's version is ${current.data.version}` : otherwise;
}
