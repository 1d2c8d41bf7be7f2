import { z } from "zod";
import { Since } from "./duration.ts";
import { isJsonObject } from "./json.ts";
import { maxSeriesOfAnswer, SeriesPointer } from "./series.ts";

/** A JSON pointer (RFC 6901) into the shadow; it covers what is below it. */
export const ShadowPointer = z
  .string()
  .max(512)
  .regex(/^(\/([^/~]|~[01])*)+$/, "must be a JSON pointer such as /state/reported/app")
  .meta({ example: "/state/reported/app" });

const nameInUrl = z.string().regex(/^[A-Za-z0-9_.:-]{1,128}$/, "must be 1 to 128 of A-Z a-z 0-9 _ . : -");

/** Name of a device's function, usable in a URL (api.md, RPC). */
export const FunctionName = nameInUrl.meta({
  description: "Name of a function of the device.",
  example: "Sys.GetInfo",
});

/** Name of a query, usable in a URL (api.md, Device public key and the ACL). */
export const QueryName = nameInUrl.meta({
  description: "Name of a query of the device's ACL.",
  example: "temperatures",
});

const isTopicFilter = (filter: string) =>
  filter.split("/").every((level, at, levels) => {
    if (level === "#") return at === levels.length - 1;
    return level === "+" || !/[+#]/.test(level);
  });

/** An MQTT topic filter relative to `db/<device_id>/`; `temp/#` includes `temp`. */
export const TopicFilter = z
  .string()
  .min(1)
  .max(512)
  .refine((filter) => !filter.includes("\0"), "must not hold a NUL")
  .refine(isTopicFilter, "must be an MQTT topic filter: `+` and `#` are whole levels, `#` the last one")
  .meta({ example: "temp/#" });

/** A vendor's stored query, run by the holder of a device's public key (api.md, Device public key and the ACL). */
export const NamedQuery = z
  .strictObject({
    topic: TopicFilter.describe("MQTT topic filter relative to `db/<device id>/`; `temp/#` includes `temp`."),
    limit: z.int().min(0).max(5000).optional().describe("Most records of an answer."),
    order: z
      .enum(["asc", "desc"])
      .optional()
      .describe("By time of storing; `asc`, oldest first, by default."),
    since: Since.optional().describe("Inclusive; a time, or an ISO 8601 duration back from now."),
    pointers: z
      .array(SeriesPointer)
      .min(1)
      .max(maxSeriesOfAnswer)
      .optional()
      .describe(
        "JSON pointers to the numbers that the key may read over time; `topic` has no wildcards then.",
      ),
  })
  .meta({
    id: "NamedQueryInput",
    outputId: "NamedQuery",
    description: "A query of stored data that the device's public key may run.",
  });
export type NamedQuery = z.infer<typeof NamedQuery>;

const hasFewQueries = (queries: object) => Object.keys(queries).length <= 100;
const tooManyQueries = "must hold at most 100 queries";

const queriesByName = z.record(QueryName, NamedQuery).refine(hasFewQueries, tooManyQueries);

/** Refuses too many queries before each is checked, and the one name that `z.record` leaves out without a word. */
const Queries = z.preprocess((given: z.input<typeof queriesByName>, context) => {
  if (!isJsonObject(given)) return given;
  if (!hasFewQueries(given)) context.addIssue({ code: "custom", message: tooManyQueries });
  if (Object.hasOwn(given, "__proto__"))
    context.addIssue({ code: "custom", path: ["__proto__"], message: "is a forbidden name" });
  return given;
}, queriesByName);

/** What the holder of the device's public key may see, change, call and query. A member left out grants nothing. */
export const Acl = z
  .strictObject({
    read: z
      .array(ShadowPointer)
      .max(100)
      .default([])
      .describe("JSON pointers into the shadow to what the key may read."),
    write: z
      .array(ShadowPointer)
      .max(100)
      .default([])
      .describe("JSON pointers into the shadow to what the key may write."),
    rpc: z.array(FunctionName).max(100).default([]).describe("Functions that the key may call."),
    queries: Queries.default({}).describe("Queries of stored data that the key may run, by name."),
  })
  .meta({
    id: "AclInput",
    outputId: "Acl",
    description: "What a device's public key may do; a member left out grants nothing.",
  });
export type Acl = z.infer<typeof Acl>;

/**
 * An ACL without the pointers of its queries: what released methods and events hold, since readers of the first release
 * refuse a query with other members.
 */
export const AclWithoutPointers = z.object({
  ...Acl.shape,
  queries: z
    .record(QueryName, z.object(NamedQuery.omit({ pointers: true }).shape))
    .refine(hasFewQueries, tooManyQueries),
});

/** Whether a query of the ACL has pointers. */
export function hasPointers({ queries }: Acl): boolean {
  return Object.values(queries).some(({ pointers }) => pointers !== undefined);
}

/** The ACL of a device that was created without one (api.md, Device public key and the ACL). */
export const defaultAcl: Acl = {
  read: ["/state/desired/app", "/state/reported/app", "/state/reported/online"],
  write: ["/state/desired/app"],
  rpc: [],
  queries: {},
};
