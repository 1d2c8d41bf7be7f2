import { z } from "zod";
import { Violation } from "../model/violation.ts";

/** The body of every error (RFC 9457), with the member `error` that existing clients read (api.md, Conventions). */
export const Problem = z
  .object({
    type: z.string().meta({
      format: "uri-reference",
      description: "Where the reason is explained, on this server.",
    }),
    title: z.string().describe("The HTTP status in words."),
    status: z.int().describe("The HTTP status code."),
    detail: z.string().describe("What is wrong, as one sentence that may change."),
    reason: z.string().describe("Stable word in snake_case for programs."),
    request_id: z.string().describe("The id that logs and traces of this request carry."),
    error: z
      .object({
        code: z
          .int()
          .describe("The HTTP status code, or a device's own code where a device answered with an error."),
        message: z.string().describe("As `detail`, or the device's own message."),
      })
      .meta({ id: "ProblemError", description: "The error in the form that older clients read." }),
    errors: z
      .array(Violation)
      .optional()
      .describe("Each thing wrong in the request; into the body, or `/query/<name>` and `/path/<name>`."),
    pointers: z.array(z.string()).optional().describe("Members of the body that the key may not write."),
    service: z
      .string()
      .optional()
      .describe(
        "With 503 and 504: the part of the mesh that cannot serve or gave no answer, such as `data`.",
      ),
  })
  .meta({ id: "Problem", description: "An error (RFC 9457)." });
export type Problem = z.infer<typeof Problem>;
