import { request as httpRequest, type IncomingMessage } from "node:http";
import { Writable } from "node:stream";
import { dataEvents } from "@devmesh/contracts/data";
import { deviceEvents } from "@devmesh/contracts/devices";
import { gatewayEvents } from "@devmesh/contracts/gateway";
import { keyEvents } from "@devmesh/contracts/keys";
import { mesh } from "@devmesh/contracts/mesh";
import { rpcEvents } from "@devmesh/contracts/rpc-bridge";
import type { Dependency } from "@devmesh/contracts/topology";
import { type Bus, connectBus } from "@devmesh/service-kit/bus";
import { type Clock, systemClock } from "@devmesh/service-kit/clock";
import { natsConnection } from "@devmesh/service-kit/connection/nats-connection";
import { createPublisher, type Publisher } from "@devmesh/service-kit/events/publisher";
import { createMetrics, type Metrics } from "@devmesh/service-kit/metrics";
import { createClient } from "@devmesh/service-kit/rpc/client";
import type { EndpointStats } from "@devmesh/service-kit/rpc/serve";
import type { Tracer } from "@devmesh/service-kit/tracing/tracer";
import { startNatsServer, type TestNatsServer } from "@devmesh/testkit/nats-server";
import { pino } from "pino";
import { GatewayEnv } from "../src/env.ts";
import { type Gateway, startGateway } from "../src/gateway.ts";
import type { GatewayClients } from "../src/routes/handlers.ts";
import { type Fakes, secrets, serveFakes } from "./fakes.ts";

/** How a test's gateway is set up. */
export interface FixtureOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly clock?: Clock;
  readonly tracer?: Tracer;
  /** How long calls of the gateway wait for the broker, in milliseconds. */
  readonly reconnectGraceMs?: number;
}

/** A request of a test; `key` goes into the `Authorization` header. */
interface TestRequest extends Omit<RequestInit, "headers" | "body"> {
  readonly key?: keyof typeof secrets | null;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent as JSON. */
  readonly json?: unknown;
  readonly body?: string | Uint8Array<ArrayBuffer> | ReadableStream;
}

/** The real gateway over HTTP, with fakes of its contracts on a real nats-server. */
export interface Fixture extends AsyncDisposable {
  readonly url: string;
  readonly server: TestNatsServer;
  readonly fakes: Fakes;
  readonly events: Publisher<typeof keyEvents>;
  readonly deviceEvents: Publisher<typeof deviceEvents>;
  readonly rpcEvents: Publisher<typeof rpcEvents>;
  readonly dataEvents: Publisher<typeof dataEvents>;
  /** Ends the gateway's connection to the broker; resolves when it has another. */
  reconnect(): Promise<void>;
  /** The connection of the fakes. */
  readonly services: Bus;
  readonly metrics: Metrics;
  /** Totals of the requests, for discovery. */
  readonly answered: EndpointStats;
  /** All that was logged so far. */
  log(): string;
  fetch(path: string, request?: TestRequest): Promise<Response>;
  /** A request that can be read slowly or given up. */
  open(path: string, key?: keyof typeof secrets): Promise<IncomingMessage>;
  stopGateway(): Promise<void>;
  /** Starts one more gateway on the same broker, which ends with the first, and answers its address. */
  startAnother(): Promise<string>;
}

/** Starts it all on free ports. Rates are high unless a test sets them. */
export async function startFixture({
  env = {},
  clock = systemClock,
  ...busOptions
}: FixtureOptions = {}): Promise<Fixture> {
  const lines: string[] = [];
  const log = pino(
    { level: "trace" },
    new Writable({
      write(chunk, _encoding, done) {
        lines.push(String(chunk));
        done();
      },
    }),
  );
  const server = await startNatsServer({ jetstream: true });
  const metrics = createMetrics();
  const services = await connectBus({ url: server.url, name: "fakes", log });
  const bus = await connectBus({ url: server.url, name: "gateway", log, metrics, ...busOptions });
  const fakes = serveFakes(services);
  const events = await createPublisher(services, keyEvents);
  await services.flush();
  const settings = GatewayEnv.parse({
    PORT: "0",
    RATE_MASTER: "100000",
    RATE_KEY: "100000",
    RATE_ANONYMOUS: "100000",
    DRAIN_MS: "2000",
    ...env,
  });
  const startOn = async (bus: Bus): Promise<Gateway> =>
    startGateway({
      env: settings,
      bus,
      clients: clientsOf(bus),
      publisher: await createPublisher(bus, gatewayEvents),
      clock,
      log,
      metrics: bus.metrics,
    });
  const gateway = await startOn(bus);
  const others: { readonly gateway: Gateway; readonly bus: Bus }[] = [];
  return {
    url: gateway.url,
    server,
    fakes,
    events,
    deviceEvents: await createPublisher(services, deviceEvents),
    rpcEvents: await createPublisher(services, rpcEvents),
    dataEvents: await createPublisher(services, dataEvents),
    reconnect: () =>
      new Promise((resolve, reject) => {
        bus.onReconnect(resolve);
        bus[natsConnection].reconnect().catch(reject);
      }),
    services,
    metrics,
    answered: gateway.answered,
    log: () => lines.join(""),
    fetch: (path, request = {}) => send(gateway.url, path, request),
    open: (path, key = "master") =>
      new Promise((resolve, reject) => {
        httpRequest(
          `${gateway.url}${path}`,
          { headers: { authorization: `Bearer ${secrets[key]}` } },
          resolve,
        )
          .on("error", reject)
          .end();
      }),
    stopGateway: () => gateway.stop(),
    async startAnother() {
      const otherBus = await connectBus({ url: server.url, name: "gateway", log, metrics: createMetrics() });
      const other = await startOn(otherBus);
      others.push({ gateway: other, bus: otherBus });
      return other.url;
    },
    async [Symbol.asyncDispose]() {
      await gateway.stop();
      for (const other of others) {
        await other.gateway.stop();
        await other.bus[natsConnection].close();
      }
      await Promise.all([bus[natsConnection].close(), services[natsConnection].close()]);
      await server.stop();
    },
  };
}

function clientsOf(bus: Bus): GatewayClients {
  const clients = mesh.gateway.calls.map((dependency) => [
    dependency.contract.service,
    createClient<Dependency>(bus, dependency),
  ]);
  // Method names known at run time get here the types derived from the declaration.
  return Object.fromEntries(clients) as unknown as GatewayClients;
}

function send(
  url: string,
  path: string,
  { key = "master", headers, json, ...init }: TestRequest,
): Promise<Response> {
  return fetch(`${url}${path}`, {
    redirect: "manual",
    ...init,
    ...(json !== undefined && { method: init.method ?? "POST", body: JSON.stringify(json) }),
    headers: {
      ...(key !== null && { authorization: `Bearer ${secrets[key]}` }),
      ...(json !== undefined && { "content-type": "application/json" }),
      ...headers,
    },
  });
}
