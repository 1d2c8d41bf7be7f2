import { startNatsServer, type TestNatsServer } from "@devmesh/testkit/nats-server";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { type Bus, connectBus } from "../src/connection/bus.ts";
import { natsConnection } from "../src/connection/nats-connection.ts";

describe("a request", () => {
  let server: TestNatsServer;
  let caller: Bus;
  let callee: Bus;
  const abandoned: unknown[] = [];

  beforeAll(async () => {
    server = await startNatsServer();
    caller = await connectBus({ url: server.url, name: "caller" });
    callee = await connectBus({ url: server.url, name: "callee" });
    callee[natsConnection].subscribe("echo", { callback: (_, msg) => void msg.respond(msg.data) });
    callee[natsConnection].subscribe("silent", { callback: (_, msg) => void abandoned.push(msg.reply) });
    await callee.flush();
  });
  afterAll(async () => {
    await caller?.close();
    await callee?.close();
    await server?.stop();
  });

  test("resolves with its own reply, also beside a thousand others", async () => {
    const numbers = Array.from({ length: 1_000 }, (_, nth) => String(nth));
    const replies = await Promise.all(
      numbers.map((body) => caller.request("echo", body, { timeoutMs: 10_000 })),
    );
    expect(replies.map((reply) => reply.string())).toEqual(numbers);
  });

  test("is refused at once when no one subscribes to its subject", async () => {
    await expect(caller.request("nowhere", "", { timeoutMs: 60_000 })).rejects.toMatchObject({
      name: "NoResponders",
    });
  });

  test("ends after its time, and a late reply is dropped", async () => {
    await expect(caller.request("silent", "", { timeoutMs: 20 })).rejects.toMatchObject({
      name: "TimeoutError",
    });
    callee[natsConnection].publish(String(abandoned.at(-1)), "late");
    await callee.flush();
    const reply = await caller.request("echo", "next", { timeoutMs: 10_000 });
    expect(reply.string()).toBe("next");
  });

  test("ends with the reason of its signal", async () => {
    const controller = new AbortController();
    const request = caller.request("silent", "", { timeoutMs: 60_000, signal: controller.signal });
    controller.abort(new Error("given up"));
    await expect(request).rejects.toThrow("given up");
    await expect(
      caller.request("echo", "", { timeoutMs: 60_000, signal: controller.signal }),
    ).rejects.toThrow("given up");
  });

  test("ends when its connection is closed", async () => {
    const other = await connectBus({ url: server.url, name: "other" });
    const request = other.request("silent", "", { timeoutMs: 60_000 });
    const ended = expect(request).rejects.toMatchObject({ name: "ClosedConnectionError" });
    await other[natsConnection].close();
    await ended;
  });
});
