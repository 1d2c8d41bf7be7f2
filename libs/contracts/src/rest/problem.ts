import { z } from "zod";
import { Violation } from "../model/violation.ts";

/** The body of every error (RFC 9457), with the member `error` that existing clients read (api.md, Conventions). */
export const Problem = z
  .object({
    type: z.string().meta({ format: "uri-reference" }),
    title: z.string(),
    status: z.int(),
    detail: z.string(),
    /** Stable snake_case word; docs/errors.md lists them all. */
    reason: z.string(),
    request_id: z.string(),
    error: z.object({
      /** The HTTP status, or a device's own code where a device answered an error. */
      code: z.int(),
      message: z.string(),
    }),
    /** Each thing wrong in a request, with a JSON pointer to it. */
    errors: z.array(Violation).optional(),
    /** Members of the body that the key may not write. */
    pointers: z.array(z.string()).optional(),
    /** With 503: the part of the mesh that cannot serve, such as `data`. */
    service: z.string().optional(),
  })
  .meta({ id: "Problem" });
export type Problem = z.infer<typeof Problem>;
