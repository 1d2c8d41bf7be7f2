import { release } from "@devmesh/contracts/release";
import { startBuses, type TestBuses } from "@devmesh/testkit/sample-mesh/buses";
import { everyMethod, greeter, greetings } from "@devmesh/testkit/sample-mesh/greeter";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { z } from "zod";
import type { Bus } from "../src/connection/bus.ts";
import { natsConnection } from "../src/connection/nats-connection.ts";
import { announce, discover, ServiceStats } from "../src/process/discovery.ts";
import { createClient } from "../src/rpc/client.ts";
import { createCallContext } from "../src/rpc/context.ts";
import { serve } from "../src/rpc/serve.ts";

const identity = {
  name: z.string(),
  id: z.string(),
  version: z.string(),
  metadata: z.record(z.string(), z.string()),
};

/** Answer to `$SRV.PING` (ADR-32). */
const ServicePing = z.object({ type: z.literal("io.nats.micro.v1.ping_response"), ...identity });

/** Answer to `$SRV.INFO` (ADR-32). */
const ServiceInfo = z.object({
  type: z.literal("io.nats.micro.v1.info_response"),
  ...identity,
  description: z.string(),
  endpoints: z.array(
    z.object({
      name: z.string(),
      subject: z.string(),
      queue_group: z.string(),
      metadata: z.record(z.string(), z.string()),
    }),
  ),
});

describe("discovery after ADR-32", () => {
  let buses: TestBuses;
  let asking: Bus;
  beforeAll(async () => {
    buses = await startBuses();
    asking = await buses.connect("nats-cli");
    for (const replicaId of ["one", "two"]) {
      const bus = await buses.connect("greeter", { replicaId });
      announce(bus, { description: "greets", served: [serve(bus, greeter, greetings())] });
      await bus.flush();
    }
  });
  afterAll(() => buses.stop());

  async function ask(subject: string): Promise<unknown[]> {
    const replies: unknown[] = [];
    for await (const reply of await asking[natsConnection].requestMany(subject, "", {
      // The first may be late beside busy processes; the others follow it.
      strategy: "stall",
      maxWait: 10_000,
      stall: 500,
    })) {
      replies.push(reply.json());
    }
    return replies;
  }

  test.each(["$SRV.PING", "$SRV.PING.greeter"])("%s is answered by every replica", async (subject) => {
    const pings = (await ask(subject)).map((reply) => ServicePing.parse(reply));
    expect(pings.map(({ name, id, version }) => `${name}/${id} ${version}`).sort()).toEqual([
      "greeter/one 1.0.0",
      "greeter/two 1.0.0",
    ]);
    for (const { metadata } of pings) expect(metadata).toEqual({ release });
  });

  test("$SRV.PING of one replica is answered by it alone", async () => {
    expect((await ask("$SRV.PING.greeter.two")).map((reply) => ServicePing.parse(reply).id)).toEqual(["two"]);
  });

  test("$SRV.INFO lists every method with its subject and queue group", async () => {
    const [info] = (await ask("$SRV.INFO.greeter.one")).map((reply) => ServiceInfo.parse(reply));
    expect(info?.endpoints).toContainEqual({
      name: "greet",
      subject: "mesh.greeter.v1.greet",
      queue_group: "greeter",
      metadata: {},
    });
    expect(info?.endpoints).toHaveLength(Object.keys(greeter.methods).length);
  });

  test("$SRV.STATS counts requests and errors and names the last one", async () => {
    const client = createClient(asking, everyMethod);
    const call = () => createCallContext({ timeoutMs: 30_000 });
    await client.greet({ name: "Ada" }, call());
    await client.greet({ name: "nobody" }, call()).catch(() => undefined);
    const stats = (await ask("$SRV.STATS")).map((reply) => ServiceStats.parse(reply));
    const greet = stats.flatMap(({ endpoints }) => endpoints).filter(({ name }) => name === "greet");
    expect(greet.reduce((sum, { num_requests }) => sum + num_requests, 0)).toBe(2);
    expect(greet.reduce((sum, { num_errors }) => sum + num_errors, 0)).toBe(1);
    expect(greet.map(({ last_error }) => last_error)).toContain("not_found:nobody_here");
  });

  test("$SRV.STATS counts what is answered elsewhere, which $SRV.INFO does not offer", async () => {
    const bus = await buses.connect("greeter", { replicaId: "three" });
    const http = { name: "http", subject: "http", queueGroup: "", lastError: "" };
    const elsewhere = [{ ...http, requests: 3, errors: 1, processingNs: 8_000_000 }];
    const announced = announce(bus, { description: "greets", served: [], elsewhere });
    await bus.flush();
    const [stats] = (await ask("$SRV.STATS.greeter.three")).map((reply) => ServiceStats.parse(reply));
    expect(stats?.endpoints).toMatchObject([
      { name: "http", num_requests: 3, num_errors: 1, average_processing_time: 2_666_666 },
    ]);
    const [info] = (await ask("$SRV.INFO.greeter.three")).map((reply) => ServiceInfo.parse(reply));
    expect(info?.endpoints).toEqual([]);
    announced.withdraw();
    await bus.flush();
  });

  test.each([
    ["fail", (): Promise<number> => Promise.reject(new Error("the store is away"))],
    ["not come", () => new Promise<never>(() => undefined)],
  ])("$SRV.STATS is answered without a figure that does %s, and with the others", async (_, stored_bytes) => {
    const figures = { records_stored: () => 7, stored_bytes };
    const bus = await buses.connect("greeter", { replicaId: "four" });
    const announced = announce(bus, { description: "greets", served: [], figures });
    await bus.flush();
    const stats = await asking[natsConnection].request("$SRV.STATS.greeter.four", "", { timeout: 10_000 });
    expect(stats.json()).toMatchObject({ id: "four", figures: { records_stored: 7 } });
    announced.withdraw();
    await bus.flush();
  });

  test("finds all replicas for a dashboard", async () => {
    expect((await discover(asking, 150)).map(({ id }) => id).sort()).toEqual(["one", "two"]);
  });
});
