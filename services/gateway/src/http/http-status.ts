import type { Code } from "@devmesh/contracts/contract";
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

/** HTTP status of each error code between services. Exhaustive: a new code cannot be forgotten. */
const statusOfCode: Readonly<Record<Code, number>> = {
  invalid_argument: 400,
  unauthenticated: 401,
  permission_denied: 403,
  not_found: 404,
  conflict: 409,
  resource_exhausted: 429,
  internal: 500,
  unavailable: 503,
  deadline_exceeded: 504,
};

/** Reasons that HTTP tells apart more finely than the nine codes do (api.md, RPC and Device). */
const statusOfReason: Readonly<Partial<Record<CallReason, number>>> = {
  precondition_failed: 412,
  shadow_too_large: 413,
  meta_too_large: 413,
  frame_too_large: 413,
  device_error: 502,
  bad_device_reply: 502,
};

/** HTTP status of an error that a service answered. The only place where codes and HTTP meet (ADR 4). */
export function httpStatus(code: Code, reason: string): number {
  const special = Object.hasOwn(statusOfReason, reason) ? statusOfReason[reason as CallReason] : undefined;
  return special ?? statusOfCode[code];
}
