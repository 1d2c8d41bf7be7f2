import type { ErrorDeclaration } from "@devmesh/contracts/contract";
import type { BodyDeclaration, RouteDeclaration } from "@devmesh/contracts/rest/route";
import { z } from "zod";

const noMembers = { schema: z.strictObject({}), optional: true } as const;

/** The body that a route checks. A POST that declares none refuses any member (api.md, Conventions). */
export function checkedBodyOf({ method, body }: RouteDeclaration): BodyDeclaration | undefined {
  return body ?? (method === "post" ? noMembers : undefined);
}

/** The errors that the methods called by a route declare, by reason. */
export function declaredErrors({ calls }: RouteDeclaration): ReadonlyMap<string, ErrorDeclaration> {
  return new Map(
    calls.flatMap(({ contract, methods }) =>
      methods.flatMap((method) => Object.entries(contract.methods[method]?.errors ?? {})),
    ),
  );
}
