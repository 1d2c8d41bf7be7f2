import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";

/** A span as a collector receives it. */
export interface CollectedSpan {
  /** `service.name` of its resource. */
  readonly service: string;
  readonly name: string;
  readonly kind: (typeof kinds)[number];
  readonly traceId: string;
  readonly spanId: string;
  /** Empty for the first span of a trace. */
  readonly parentId: string;
  readonly failed: boolean;
  readonly attributes: Readonly<Record<string, string | number>>;
}

/** A collector of OpenTelemetry that keeps what it receives by OTLP over HTTP. */
export interface TraceCollector extends AsyncDisposable {
  /** For `OTEL_EXPORTER_OTLP_ENDPOINT`. */
  readonly url: string;
  /** Of all requests, in the order of their arrival. */
  readonly spans: readonly CollectedSpan[];
  /** Of the last request. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** All bodies as they came, for searches. */
  received(): string;
}

const kinds = ["unspecified", "internal", "server", "client", "producer", "consumer"] as const;

/** Starts a collector on a free port of 127.0.0.1. With `answers: false` it refuses all requests, at its end. */
export async function startTraceCollector({ answers = true } = {}): Promise<TraceCollector> {
  const spans: CollectedSpan[] = [];
  const bodies: Buffer[] = [];
  const waiting: ServerResponse[] = [];
  let headers: TraceCollector["headers"] = {};
  const server = createServer(async (request, response) => {
    const body = await buffer(request);
    headers = request.headers;
    if (!answers) return void waiting.push(response);
    if (request.url !== "/v1/traces" || request.headers["content-type"] !== "application/x-protobuf") {
      response.writeHead(404).end();
      return;
    }
    bodies.push(body);
    spans.push(...spansOf(body));
    response.writeHead(200, { "content-type": "application/x-protobuf" }).end();
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans,
    get headers() {
      return headers;
    },
    received: () => Buffer.concat(bodies).toString("latin1"),
    async [Symbol.asyncDispose]() {
      for (const response of waiting) response.writeHead(400).end();
      server.closeIdleConnections();
      await server[Symbol.asyncDispose]();
    },
  };
}

/** An `ExportTraceServiceRequest` of opentelemetry-proto 1. */
function spansOf(request: Buffer): CollectedSpan[] {
  return parts(request, 1).flatMap((ofResource) => {
    const resource = attributesOf(parts(ofResource, 1).flatMap((part) => parts(part, 1)));
    const spans = parts(ofResource, 2).flatMap((ofScope) => parts(ofScope, 2));
    return spans.map((span) => ({
      service: String(resource["service.name"]),
      traceId: parts(span, 1)[0]?.toString("hex") ?? "",
      spanId: parts(span, 2)[0]?.toString("hex") ?? "",
      parentId: parts(span, 4)[0]?.toString("hex") ?? "",
      name: parts(span, 5)[0]?.toString() ?? "",
      kind: kinds[numberOf(span, 6)] ?? "unspecified",
      attributes: attributesOf(parts(span, 9)),
      failed: parts(span, 15).some((status) => numberOf(status, 3) === 2),
    }));
  });
}

function attributesOf(keyValues: readonly Buffer[]): Record<string, string | number> {
  return Object.fromEntries(
    keyValues.map((keyValue) => {
      const value = parts(keyValue, 2)[0] ?? Buffer.alloc(0);
      return [parts(keyValue, 1)[0]?.toString() ?? "", parts(value, 1)[0]?.toString() ?? numberOf(value, 3)];
    }),
  );
}

/** The fields of one number that hold bytes: strings and nested messages. */
function parts(message: Buffer, field: number): Buffer[] {
  return fieldsOf(message).flatMap(([number, value]) =>
    number === field && typeof value !== "number" ? [value] : [],
  );
}

function numberOf(message: Buffer, field: number): number {
  const found = fieldsOf(message).find(([number]) => number === field)?.[1];
  return typeof found === "number" ? found : 0;
}

/** The fields of a message of Protocol Buffers; times and other numbers of fixed size are left out. */
function fieldsOf(message: Buffer): [number: number, value: number | Buffer][] {
  const fields: [number, number | Buffer][] = [];
  let at = 0;
  const varint = () => {
    let value = 0;
    for (let factor = 1; ; factor *= 128) {
      const byte = message.readUInt8(at++);
      value += (byte & 127) * factor;
      if (byte < 128) return value;
    }
  };
  while (at < message.length) {
    const tag = varint();
    const field = Math.floor(tag / 8);
    const type = tag & 7;
    if (type === 0) fields.push([field, varint()]);
    else if (type === 2) {
      const length = varint();
      fields.push([field, message.subarray(at, at + length)]);
      at += length;
    } else at += type === 1 ? 8 : 4;
  }
  return fields;
}
