import { z } from "zod";
import { TraceEnv } from "../tracing/trace-env.ts";

/** A variable with a whole number within bounds. */
export const wholeNumber = (fallback: number, min: number, max: number) =>
  z.coerce.number().int().min(min).max(max).default(fallback);

const kilobyte = 1024;
const unitBytes: Readonly<Record<string, number>> = {
  "": 1,
  K: kilobyte,
  M: kilobyte ** 2,
  G: kilobyte ** 3,
  T: kilobyte ** 4,
};

/** A variable with bytes, or a number with K, M, G or T (powers of 1,024); at least 1M. */
export const byteSize = z
  .string()
  .regex(/^\d{1,15}[KMGT]?$/i, "must be a number of bytes, or a number with K, M, G or T, such as 10G")
  .transform((text) => {
    const unit = text.replace(/^\d+/, "").toUpperCase();
    return Number.parseInt(text, 10) * (unitBytes[unit] ?? 1);
  })
  .refine((bytes) => bytes >= kilobyte ** 2 && Number.isSafeInteger(bytes), "must be at least 1M");

/** The environment every service reads. A service extends it with its own: `ServiceEnv.extend({…})`. */
export const ServiceEnv = z.object({
  /** One or more broker addresses, comma-separated. */
  NATS_URL: z
    .string()
    .regex(
      /^(nats|tls|wss?):\/\/[^\s,]+(\s*,\s*(nats|tls|wss?):\/\/[^\s,]+)*$/,
      "must be nats://HOST:PORT, or several of it with commas between",
    )
    .default("nats://127.0.0.1:4222"),
  /** The users are `<NATS_USER>.mesh` and those of other accounts. Default: the service's name. */
  NATS_USER: z.string().min(1).optional(),
  NATS_PASSWORD: z.string().min(1).optional(),
  /** Default: random. */
  REPLICA_ID: z
    .string()
    .regex(/^[A-Za-z0-9_-]{1,64}$/, "must be 1 to 64 of A-Z a-z 0-9 _ -")
    .optional(),
  LOG_LEVEL: z.enum(["trace", "debug", "info", "warn", "error", "fatal", "silent"]).default("info"),
  OPS_HOST: z.string().min(1).default("127.0.0.1"),
  /** 0: any free port. */
  OPS_PORT: wholeNumber(0, 0, 65_535),
  /** Longest wait for running calls at shutdown, in milliseconds. */
  DRAIN_MS: wholeNumber(30_000, 0, 600_000),
  /** Servers that keep each stream: 1 for a single broker, 3 for a cluster. */
  STREAM_REPLICAS: wholeNumber(1, 1, 5),
  ...TraceEnv.shape,
});
export type ServiceEnv = z.infer<typeof ServiceEnv>;

/** A read environment, or one sentence for each variable that is wrong; never a value. */
export type EnvReading<T> = { readonly env: T } | { readonly problems: readonly string[] };

/** Checks an environment against a schema. An empty variable counts as missing. */
export function readEnv<S extends z.ZodType>(
  schema: S,
  source: Readonly<Record<string, string | undefined>>,
): EnvReading<z.output<S>> {
  const present = Object.fromEntries(
    Object.entries(source).filter(([, value]) => value !== undefined && value !== ""),
  );
  const read = schema.safeParse(present, { error: requirementOf });
  if (read.success) return { env: read.data };
  return {
    problems: read.error.issues.map((issue) => {
      const name = String(issue.path[0] ?? "the environment");
      return name in present || issue.path.length === 0
        ? `${name} is wrong: ${issue.message}.`
        : `${name} is missing: ${issue.message}.`;
    }),
  };
}

/** Requirement of a variable in words; undefined where zod's own are good. A schema's own message takes precedence. */
function requirementOf(issue: z.core.$ZodRawIssue): string | undefined {
  switch (issue.code) {
    case "invalid_type":
      if (issue.input === undefined) return "it has no default";
      if (issue.expected === "number") return "must be a number";
      return issue.expected === "int" ? "must be a whole number" : undefined;
    case "too_small":
      if (issue.origin !== "number") return undefined;
      return `must be ${issue.inclusive ? "at least" : "more than"} ${issue.minimum}`;
    case "too_big":
      if (issue.origin !== "number") return undefined;
      return `must be ${issue.inclusive ? "at most" : "less than"} ${issue.maximum}`;
    case "invalid_value":
      return `must be one of ${issue.values.join(", ")}`;
    default:
      return undefined;
  }
}

/** The environment of this process; when it is wrong, prints why to stderr and exits with code 1. */
export function parseEnv<S extends z.ZodType>(schema: S): z.output<S> {
  const reading = readEnv(schema, process.env);
  if ("env" in reading) return reading.env;
  for (const problem of reading.problems) process.stderr.write(`${problem}\n`);
  process.exit(1);
}
