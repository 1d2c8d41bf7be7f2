import type { MeshChange } from "@devmesh/contracts/model/mesh-change";
import type { Principal } from "@devmesh/contracts/principal";
import type { Exchange, Reply } from "../http/exchange.ts";
import type { ChangingRoute } from "../http/router.ts";

/** What a request has changed, by ids; null where its key is not known or may change nothing. */
export function changeOf(
  { operation, change: kind }: ChangingRoute,
  {
    principal,
    authorKeyId,
    keyName,
    params,
  }: Pick<Exchange, "principal" | "authorKeyId" | "keyName" | "params">,
  { created }: Pick<Reply, "created">,
  at: Date,
): MeshChange | null {
  if (principal === undefined || authorKeyId === undefined || principal.kind === "device") return null;
  const own = ownId(principal);
  const target = created ?? idIn(params) ?? own;
  const byId = principal.kind === "device_key" ? authorKeyId : (own ?? authorKeyId);
  return {
    at: at.toISOString(),
    by: { kind: principal.kind, id: byId, name: keyName ?? null },
    operation,
    target: target === undefined ? null : { kind, id: target },
    count: 1,
  };
}

/** Id of what a key is bound to: a device or a customer. */
function ownId(principal: Principal): string | undefined {
  if (principal.kind === "master") return undefined;
  return principal.kind === "customer" ? principal.customer_id : principal.device_id;
}

function idIn(params: unknown): string | undefined {
  const { id } = (params ?? {}) as { readonly id?: unknown };
  return typeof id === "string" ? id : undefined;
}
