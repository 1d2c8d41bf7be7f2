import type { BodyDeclaration, RouteDeclaration } from "@devmesh/contracts/rest/route";
import { z } from "zod";

const noMembers = { schema: z.strictObject({}), optional: true } as const;

/**
 * The body that a route checks. A POST that takes none is held to the same rules: what was sent must be JSON and is
 * refused for any member, rather than lost without a word (api.md, Conventions).
 */
export function checkedBodyOf({ method, body }: RouteDeclaration): BodyDeclaration | undefined {
  return body ?? (method === "post" ? noMembers : undefined);
}
