import { type Code, statusOfCode } from "@devmesh/contracts/contract";
import type { mesh } from "@devmesh/contracts/mesh";
import type { Violation } from "@devmesh/contracts/model/violation";

type Contract = (typeof mesh)["gateway"]["calls"][number]["contract"];
type ReasonOf<C> = C extends { readonly methods: infer M }
  ? { [K in keyof M]: M[K] extends { readonly errors: infer E } ? keyof E : never }[keyof M]
  : never;

/** Reasons with another status than their code (api.md, RPC and Device). */
const statusOfReason: Readonly<Partial<Record<ReasonOf<Contract>, number>>> = {
  precondition_failed: 412,
  shadow_too_large: 413,
  meta_too_large: 413,
  frame_too_large: 413,
  firmware_too_large: 413,
  device_error: 502,
  bad_device_reply: 502,
};

/** `Retry-After` of reasons that end after a known time, in seconds at most. */
const retryAfterOfReason: Readonly<Partial<Record<ReasonOf<Contract>, number>>> = {
  too_many_invitations: 3_600,
};

/** Seconds until a request that was refused for this reason may succeed; undefined where nobody knows. */
export function retryAfterOf(code: Code, reason: string): number | undefined {
  return code === "unavailable" ? 1 : retryAfterOfReason[reason as ReasonOf<Contract>];
}

/** What is wrong for reasons that are always about the same member or parameter. */
const violationOfReason: Readonly<Partial<Record<ReasonOf<Contract>, Violation>>> = {
  cursor_invalid: { pointer: "/query/after", detail: "is not a cursor of this list" },
  device_mismatch: { pointer: "/query/device_id", detail: "is not the device of the key" },
  firmware_too_large: { pointer: "/size", detail: "exceeds the largest size of a file" },
  signature_invalid: { pointer: "/signature", detail: "does not verify the SHA-256" },
  filter_invalid: { pointer: "/query/filter", detail: "must not hold a NUL" },
  key_contradictory: { pointer: "/access", detail: "contradicts `device_id`" },
  meta_too_large: { pointer: "/meta", detail: "exceeds 16 KB" },
  board_changed: { pointer: "/revision", detail: "is not the revision of the board" },
  view_name_taken: { pointer: "/name", detail: "is the name of another view" },
  topic_unbound: { pointer: "/query/topic", detail: "goes only with `device_id`" },
};

/** The violations of an error whose owner names none; undefined where no single member or parameter is at fault. */
export function violationOf(reason: string): Violation[] | undefined {
  const violation = violationOfReason[reason as ReasonOf<Contract>];
  return violation && [violation];
}

/** HTTP status of a service's error (ADR 4). */
export function httpStatus(code: Code, reason: string): number {
  const special = Object.hasOwn(statusOfReason, reason)
    ? statusOfReason[reason as ReasonOf<Contract>]
    : undefined;
  return special ?? statusOfCode[code];
}
