import { type Code, statusOfCode } from "@devmesh/contracts/contract";
import type { mesh } from "@devmesh/contracts/mesh";
import type { KitReason } from "@devmesh/service-kit/errors";

type Dependency = (typeof mesh)["gateway"]["calls"][number];
type ErrorsOf<D> = D extends {
  readonly contract: { readonly methods: infer M };
  readonly methods: readonly (infer N)[];
}
  ? { [K in keyof M & N]: M[K] extends { readonly errors: infer E } ? keyof E & string : never }[keyof M & N]
  : never;

/** Every reason that a call of the gateway can end with. */
type CallReason = ErrorsOf<Dependency> | KitReason;

/** Reasons that HTTP tells apart more finely than the nine codes do (api.md, RPC and Device). */
const statusOfReason: Readonly<Partial<Record<CallReason, number>>> = {
  precondition_failed: 412,
  shadow_too_large: 413,
  meta_too_large: 413,
  frame_too_large: 413,
  device_error: 502,
  bad_device_reply: 502,
};

/** HTTP status of an error that a service answered (ADR 4). */
export function httpStatus(code: Code, reason: string): number {
  const special = Object.hasOwn(statusOfReason, reason) ? statusOfReason[reason as CallReason] : undefined;
  return special ?? statusOfCode[code];
}
