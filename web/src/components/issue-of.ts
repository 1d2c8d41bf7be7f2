import type { ZodType } from "zod";

/** The first rule of a schema that a value breaks; null if it is valid. */
export function issueOf(schema: ZodType, value: unknown): string | null {
  return schema.safeParse(value).error?.issues[0]?.message ?? null;
}
