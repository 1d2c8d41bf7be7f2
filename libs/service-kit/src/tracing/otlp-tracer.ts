import { AsyncLocalStorage } from "node:async_hooks";
import { ROOT_CONTEXT, SpanKind, SpanStatusCode, TraceFlags, trace as traces } from "@opentelemetry/api";
import { ExportResultCode } from "@opentelemetry/core";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-proto";
import { detectResources, envDetector, resourceFromAttributes } from "@opentelemetry/resources";
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  ParentBasedSampler,
  type Sampler,
  type SpanExporter,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from "@opentelemetry/sdk-trace";
import { withTimeout } from "../clock.ts";
import type { Logger } from "../logger.ts";
import { newSpanId, newTraceId, type TraceContext } from "./trace.ts";
import type { TraceEnv } from "./trace-env.ts";
import type { Tracer } from "./tracer.ts";

/** How long `close` waits for the collector, in milliseconds. */
const closeMs = 1_500;

const kinds = {
  server: SpanKind.SERVER,
  client: SpanKind.CLIENT,
  producer: SpanKind.PRODUCER,
  consumer: SpanKind.CONSUMER,
};

/** Where the spans of a process go, and as whose. */
export interface OtlpTracerOptions {
  /** Of the collector, with the path. */
  readonly url: string;
  readonly service: string;
  readonly env: Pick<TraceEnv, "OTEL_TRACES_SAMPLER" | "OTEL_TRACES_SAMPLER_ARG"> & {
    readonly REPLICA_ID?: string | undefined;
  };
  readonly log: Logger;
}

/**
 * A tracer that exports by OTLP over HTTP. The library itself reads the variables of the exporter, such as headers, and
 * of the resource. Its queue drops spans beyond 2,048.
 */
export function createOtlpTracer({ url, service, env, log }: OtlpTracerOptions): Tracer {
  const own = resourceFromAttributes({
    "service.name": `devmesh-${service}`,
    ...(env.REPLICA_ID === undefined ? {} : { "service.instance.id": env.REPLICA_ID }),
  });
  let startedTraceId: string | undefined;
  const provider = new TracerProvider({
    resource: own.merge(detectResources({ detectors: [envDetector] })),
    sampler: samplerOf(env),
    spanProcessors: [
      new BatchSpanProcessor({ exporter: loggingOutages(new OTLPTraceExporter({ url }), log) }),
    ],
    idGenerator: {
      generateTraceId: () => startedTraceId ?? newTraceId(),
      generateSpanId: newSpanId,
    },
  });
  const tracer = provider.getTracer("@devmesh/service-kit");
  const active = new AsyncLocalStorage<TraceContext>();
  return {
    get active() {
      return active.getStore();
    },
    startSpan({ name, kind, attributes }, parent = active.getStore()) {
      // A trace that begins at its caller, where no span was recorded, keeps its id.
      startedTraceId = parent?.isStart ? parent.traceId : undefined;
      const isRemote = kind === "server" || kind === "consumer";
      const span = tracer.startSpan(name, { kind: kinds[kind], attributes }, contextOf(parent, isRemote));
      const { traceId, spanId, traceFlags } = span.spanContext();
      return {
        trace: { traceId, spanId, sampled: (traceFlags & TraceFlags.SAMPLED) !== 0 },
        end({ attributes: more, errorType } = {}) {
          if (more !== undefined) span.setAttributes(more);
          if (errorType !== undefined)
            span.setAttribute("error.type", errorType).setStatus({ code: SpanStatusCode.ERROR });
          span.end();
        },
      };
    },
    run: (span, work) => active.run(span.trace, work),
    async close() {
      // Spans that the collector does not take are lost, which has been logged.
      await withTimeout(closeMs, provider.shutdown()).catch(() => undefined);
    },
  };
}

function samplerOf({
  OTEL_TRACES_SAMPLER: name,
  OTEL_TRACES_SAMPLER_ARG: ratio,
}: OtlpTracerOptions["env"]): Sampler {
  const root = name.endsWith("traceidratio")
    ? new TraceIdRatioBasedSampler(ratio)
    : name.endsWith("on")
      ? new AlwaysOnSampler()
      : new AlwaysOffSampler();
  return name.startsWith("parentbased") ? new ParentBasedSampler({ root }) : root;
}

function contextOf(parent: TraceContext | undefined, isRemote: boolean) {
  if (parent === undefined || parent.isStart) return ROOT_CONTEXT;
  const { traceId, spanId, sampled } = parent;
  const traceFlags = sampled ? TraceFlags.SAMPLED : TraceFlags.NONE;
  return traces.setSpanContext(ROOT_CONTEXT, { traceId, spanId, traceFlags, isRemote });
}

/** Logs that the collector takes no spans, and that it does again: a line each. */
function loggingOutages(exporter: SpanExporter, log: Logger): SpanExporter {
  let failing = false;
  return {
    export(spans, done) {
      exporter.export(spans, (result) => {
        const failed = result.code !== ExportResultCode.SUCCESS;
        if (failed && !failing)
          log.warn({ err: result.error }, "the collector of traces takes no spans; they are dropped");
        if (!failed && failing) log.info("the collector of traces takes spans again");
        failing = failed;
        done(result);
      });
    },
    forceFlush: () => exporter.forceFlush?.() ?? Promise.resolve(),
    shutdown: () => exporter.shutdown(),
  };
}
