import { type Code, statusOfCode } from "@devmesh/contracts/contract";
import type { mesh } from "@devmesh/contracts/mesh";

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
  device_error: 502,
  bad_device_reply: 502,
};

/** HTTP status of a service's error (ADR 4). */
export function httpStatus(code: Code, reason: string): number {
  const special = Object.hasOwn(statusOfReason, reason)
    ? statusOfReason[reason as ReasonOf<Contract>]
    : undefined;
  return special ?? statusOfCode[code];
}
