import type { Logger } from "../logger.ts";
import type { OtlpTracerOptions } from "./otlp-tracer.ts";
import type { TraceEnv } from "./trace-env.ts";
import type { Tracer } from "./tracer.ts";

/** The tracer that the environment configures, or undefined; the libraries are only loaded for one. */
export async function openTracer(
  env: OtlpTracerOptions["env"] & TraceEnv,
  service: string,
  log: Logger,
): Promise<Tracer | undefined> {
  const { OTEL_EXPORTER_OTLP_ENDPOINT: base, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: endpoint } = env;
  const url = endpoint ?? (base === undefined ? undefined : `${base.replace(/\/+$/, "")}/v1/traces`);
  if (url === undefined || env.OTEL_SDK_DISABLED) return undefined;
  const { createOtlpTracer } = await import("./otlp-tracer.ts");
  return createOtlpTracer({ url, service, env, log });
}
