import { z } from "zod";

const samplers = [
  "always_on",
  "always_off",
  "traceidratio",
  "parentbased_always_on",
  "parentbased_always_off",
  "parentbased_traceidratio",
] as const;

/** `name=value` pairs, comma-separated and percent-encoded. */
const pairs = z.string().regex(/^\s*[^=,\s]+\s*=[^=,]*(,\s*[^=,\s]+\s*=[^=,]*)*$/, "must be NAME=VALUE,…");

/** Variables of OpenTelemetry, by its specification. */
export const TraceEnv = z.object({
  /** Of the collector, without the path. Without an endpoint nothing is recorded. */
  OTEL_EXPORTER_OTLP_ENDPOINT: collectorUrl().optional(),
  /** The endpoint for traces alone, with the path. */
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: collectorUrl().optional(),
  /** Sent with each export, such as a key of the collector; this and the next two are read by the library. */
  OTEL_EXPORTER_OTLP_HEADERS: pairs.optional(),
  /** Default: `devmesh-` and the service's name. */
  OTEL_SERVICE_NAME: z.string().optional(),
  OTEL_RESOURCE_ATTRIBUTES: pairs.optional(),
  OTEL_EXPORTER_OTLP_PROTOCOL: z.literal("http/protobuf", "must be http/protobuf").optional(),
  OTEL_TRACES_SAMPLER: z.enum(samplers).default("parentbased_always_on"),
  /** Share of the traces that is kept by a sampler with a ratio. */
  OTEL_TRACES_SAMPLER_ARG: z.coerce.number().min(0).max(1).default(1),
  OTEL_SDK_DISABLED: z.stringbool("must be true or false").default(false),
});
export type TraceEnv = z.infer<typeof TraceEnv>;

function collectorUrl() {
  return z.url({ protocol: /^https?$/, error: "must begin with http:// or https://" });
}
