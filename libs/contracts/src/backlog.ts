import { z } from "zod";
import { idempotent, type MethodDeclaration } from "./contract.ts";

/** How many messages of devices the broker keeps for a service that has not handled them yet. */
export const readBacklog = {
  ...idempotent,
  in: z.object({}),
  out: z.object({ waiting: z.int().min(0) }),
  errors: { backlog_unknown: { code: "unavailable", when: "The broker does not say what it keeps; retry." } },
} as const satisfies MethodDeclaration;
