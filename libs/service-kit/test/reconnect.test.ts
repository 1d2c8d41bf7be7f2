import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { freePort } from "@devmesh/testkit/free-port";
import { startNatsServer, type TestNatsServer } from "@devmesh/testkit/nats-server";
import { startBuses, type TestBuses, testLog } from "@devmesh/testkit/sample-mesh/buses";
import { everyMethod, greeter, greetings } from "@devmesh/testkit/sample-mesh/greeter";
import { startTcpProxy } from "@devmesh/testkit/tcp-proxy";
import { describe, expect, test } from "@jest/globals";
import { connectBus } from "../src/connection/bus.ts";
import { natsConnection } from "../src/connection/nats-connection.ts";
import { createClient } from "../src/rpc/client.ts";
import { createCallContext } from "../src/rpc/context.ts";
import { serve } from "../src/rpc/serve.ts";

const call = () => createCallContext({ timeoutMs: 30_000 });

describe("without anybody to answer", () => {
  test("a call is unavailable after a few seconds", async () => {
    await using buses = await startBuses();
    const client = createClient(await buses.connect("caller"), everyMethod);
    const startedAt = performance.now();
    await expect(client.wait({ ms: 1 }, call())).rejects.toMatchObject({ code: "unavailable" });
    expect(performance.now() - startedAt).toBeLessThan(10_000);
  });

  test("an idempotent call is sent again, and succeeds when somebody came", async () => {
    await using buses = await startBuses();
    const serving = await buses.connect("greeter");
    const calling = await buses.connect("caller");
    const greeted = createClient(calling, everyMethod).greet({ name: "Ada" }, call());
    serve(serving, greeter, greetings());
    expect(await greeted).toEqual({ text: "hello Ada" });
  });
});

describe("when the only replica of a service is replaced", () => {
  test("calls wait for the next one, and not again while it stays away", async () => {
    await using buses = await startBuses();
    const [former, next] = [await buses.connect("greeter"), await buses.connect("greeter")];
    const client = createClient(await buses.connect("caller"), everyMethod);
    const served = serve(former, greeter, greetings());
    await former.flush();
    await client.wait({ ms: 1 }, call());
    await served.drain(0);
    const waiting = client.wait({ ms: 1 }, call());
    // Longer than the calls are repeated to a service that is known to be down.
    await sleep(1_000);
    const servedNext = serve(next, greeter, greetings());
    await expect(waiting).resolves.toMatchObject({ waitedMs: expect.any(Number) });

    // Answered in between: this is another absence.
    await servedNext.drain(0);
    const startedAt = performance.now();
    await expect(client.wait({ ms: 1 }, call())).rejects.toMatchObject({ code: "unavailable" });
    const firstMs = performance.now() - startedAt;
    await expect(client.wait({ ms: 1 }, call())).rejects.toMatchObject({ code: "unavailable" });
    expect(performance.now() - startedAt - firstMs).toBeLessThan(firstMs);
  });
});

describe("when the broker dies", () => {
  test("calls are unavailable soon, and work again when it is back, without anybody's doing", async () => {
    await using buses = await startBuses();
    const serving = await buses.connect("greeter");
    const calling = await buses.connect("caller");
    serve(serving, greeter, greetings());
    await serving.flush();
    const client = createClient(calling, everyMethod);
    const lost = Promise.withResolvers<void>();
    calling.onDisconnect(lost.resolve);
    const back = [serving, calling].map((bus) => new Promise<void>((resolve) => bus.onReconnect(resolve)));
    await buses.server.kill();
    await lost.promise;
    expect(calling.connected).toBe(false);
    await expect(client.wait({ ms: 1 }, call())).rejects.toMatchObject({ code: "unavailable" });
    await buses.server.restart();
    await Promise.all(back);
    await serving.flush();
    expect(calling.connected).toBe(true);
    expect(await client.greet({ name: "Ada" }, call())).toEqual({ text: "hello Ada" });
  });

  test("a connection that nobody can make is given up when its signal aborts", async () => {
    await using buses = await startBuses();
    await buses.server.kill();
    const giveUp = new AbortController();
    const connecting = buses.connect("late", { signal: giveUp.signal });
    giveUp.abort(new Error("stopping"));
    await expect(connecting).rejects.toThrow("stopping");
    await buses.server.restart();
  });
});

describe("when the connection is lost and comes back", () => {
  /** Longer than any machine takes to connect again. */
  const reconnectGraceMs = 30_000;

  async function through(buses: TestBuses) {
    const proxy = await startTcpProxy(buses.server.port);
    const calling = await buses.connect("caller", {
      url: `nats://127.0.0.1:${proxy.port}`,
      reconnectGraceMs,
    });
    const lost = new Promise<void>((resolve) => calling.onDisconnect(resolve));
    return { proxy, lost, client: createClient(calling, everyMethod) };
  }

  test("a call made meanwhile waits, one that is not idempotent too", async () => {
    await using buses = await startBuses();
    const serving = await buses.connect("greeter");
    serve(serving, greeter, greetings());
    await serving.flush();
    const { proxy, lost, client } = await through(buses);
    proxy.cut();
    await lost;
    const waited = client.wait({ ms: 1 }, call());
    proxy.restore();
    expect(await waited).toMatchObject({ waitedMs: expect.any(Number) });
    await proxy.close();
  });

  test("an idempotent call in flight is sent again, another one is not", async () => {
    await using buses = await startBuses();
    const serving = await buses.connect("greeter");
    const received: string[] = [];
    const bothArrived = Promise.withResolvers<void>();
    const held = Promise.withResolvers<void>();
    const take = async (name: string) => {
      received.push(name);
      if (received.length === 2) bothArrived.resolve();
      if (received.length <= 2) await held.promise;
    };
    serve(
      serving,
      greeter,
      greetings({
        greet: async ({ name }) => take(name).then(() => ({ text: `hello ${name}` })),
        wait: async () => take("wait").then(() => ({ waitedMs: 0 })),
      }),
    );
    await serving.flush();
    const { proxy, lost, client } = await through(buses);
    const greeted = client.greet({ name: "Ada" }, call());
    const waited = client.wait({ ms: 1 }, createCallContext({ timeoutMs: 5_000 }));
    const refused = expect(waited).rejects.toMatchObject({ code: "deadline_exceeded" });
    await bothArrived.promise;
    proxy.cut();
    await lost;
    held.resolve();
    proxy.restore();
    expect(await greeted).toEqual({ text: "hello Ada" });
    await refused;
    expect(received.toSorted()).toEqual(["Ada", "Ada", "wait"]);
    await proxy.close();
  });

  test("a call that is sent again and finds itself carried out has succeeded, and not an unsent one", async () => {
    await using buses = await startBuses();
    const serving = await buses.connect("greeter");
    const present = new Set(["Ada"]);
    const dismissed = Promise.withResolvers<void>();
    const held = Promise.withResolvers<void>();
    let received = 0;
    serve(
      serving,
      greeter,
      greetings({
        dismiss: async ({ name }, context) => {
          received++;
          if (!present.delete(name)) return context.fail("nobody_here");
          dismissed.resolve();
          await held.promise;
          return {};
        },
      }),
    );
    await serving.flush();
    const { proxy, lost, client } = await through(buses);
    await using _proxy = proxy;
    const ended = client.dismiss({ name: "Ada" }, call());
    await dismissed.promise;
    proxy.cut();
    await lost;
    const waited = client.dismiss({ name: "Ada" }, call());
    const refused = expect(waited).rejects.toMatchObject({ reason: "nobody_here" });
    proxy.restore();
    const result = await ended.finally(held.resolve);
    await refused;
    expect(result).toEqual({});
    expect(received).toBe(3);
  });
});

describe("when a service has another connection", () => {
  test("an idempotent call in flight is sent again, another one is answered over the new connection", async () => {
    await using buses = await startBuses();
    const serving = await buses.connect("greeter");
    const received: string[] = [];
    const bothArrived = Promise.withResolvers<void>();
    const held = Promise.withResolvers<void>();
    serve(
      serving,
      greeter,
      greetings({
        async greet({ name }) {
          const isFirst = !received.includes("greet");
          if (received.push("greet") === 2) bothArrived.resolve();
          // As a lost answer.
          if (isFirst) await new Promise(() => undefined);
          return { text: `hello ${name}` };
        },
        async wait() {
          if (received.push("wait") === 2) bothArrived.resolve();
          await held.promise;
          return { waitedMs: 1 };
        },
      }),
    );
    await serving.flush();
    const client = createClient(await buses.connect("caller"), everyMethod);
    const greeted = client.greet({ name: "Ada" }, call());
    const waited = client.wait({ ms: 1 }, call());
    await bothArrived.promise;
    await serving[natsConnection].reconnect();
    expect(await greeted).toEqual({ text: "hello Ada" });
    held.resolve();
    expect(await waited).toEqual({ waitedMs: 1 });
    expect(received.toSorted()).toEqual(["greet", "greet", "wait"]);
  });
});

describe("when a server of a cluster announces its stop", () => {
  async function startPair(): Promise<readonly [TestNatsServer, TestNatsServer]> {
    const ports = [await freePort(), await freePort()];
    const routes = ports.map((port) => `nats-route://127.0.0.1:${port}`).join(", ");
    const [one, other] = await Promise.all(
      ports.map((port) =>
        startNatsServer({
          config: `
            cluster { name: pair, listen: "127.0.0.1:${port}", routes: [${routes}] }
            authorization { users: [
              { user: caller, password: caller }
              { user: greeter, password: greeter, permissions: {
                publish: { deny: "_INBOX_caller.>" }, subscribe: ">", allow_responses: true
              } }
            ] }
            lame_duck_grace_period: "1m", lame_duck_duration: "2m"`,
        }),
      ),
    );
    if (one === undefined || other === undefined) throw new Error("there are two ports");
    return [one, other];
  }

  test.each([{ replicas: 1 }, { replicas: 2 }])(
    "a caller and replicas ($replicas) that are never idle leave it while it runs, and no answer is lost",
    async ({ replicas }) => {
      const [leaving, staying] = await startPair();
      await using _leaving = leaving;
      await using _staying = staying;
      const open = (name: string) =>
        connectBus({ url: leaving.url, name, user: name, password: name, log: testLog });
      const serving = await Promise.all(Array.from({ length: replicas }, () => open("greeter")));
      const calling = await open("caller");
      const buses = [...serving, calling];
      const received = Array.from({ length: 20 }, () => 0);
      const answered = [...received];
      const take: ReturnType<typeof greetings>["wait"] = async (input, context) => {
        const nth = input.ms % 100;
        received[nth] = (received[nth] ?? 0) + 1;
        return await greetings().wait(input, context);
      };
      for (const bus of serving) {
        serve(bus, greeter, greetings({ wait: take }));
        await bus.flush();
      }
      const client = createClient(calling, everyMethod);
      const moved = Promise.all(buses.map((bus) => new Promise<void>((resolve) => bus.onReconnect(resolve))));
      let isDone = false;
      const callers = received.map(async (_, nth) => {
        // Nobody else takes requests while a single replica answers the slow one.
        const ms = nth + (nth === 0 && replicas > 1 ? 500 : 100);
        while (!isDone) {
          await client.wait({ ms }, createCallContext({ timeoutMs: 30_000 }));
          answered[nth] = (answered[nth] ?? 0) + 1;
        }
      });

      process.kill(leaving.pid, "SIGUSR2");
      await moved;
      isDone = true;
      await Promise.allSettled(callers);
      for (const bus of buses) expect(bus[natsConnection].getServer()).toContain(`:${staying.port}`);
      expect(() => process.kill(leaving.pid, 0)).not.toThrow();
      await Promise.all(buses.map((bus) => bus.close()));
      // A server drops a request that was routed to it when nobody subscribes any more (ADR 27): it is not received.
      expect(answered).toEqual(received);
    },
  );
});

describe("a server of the list that accepts connections and never answers", () => {
  /** Far less than the 20 s that the client waits by default, far more than the two seconds that it is given. */
  const soonMs = 15_000;

  test("delays the first connection by a few seconds", async () => {
    await using buses = await startBuses();
    await using proxy = await startTcpProxy(buses.server.port);
    const sockets: Socket[] = [];
    const silent = createServer((socket) => void sockets.push(socket.on("error", () => undefined)));
    silent.listen(0, "127.0.0.1");
    await once(silent, "listening");
    const { port } = silent.address() as AddressInfo;
    // Until the silent server was tried, the other one refuses: the client tries them in any order.
    proxy.cut();
    const tried = once(silent, "connection");
    const connecting = buses.connect("caller", {
      url: `nats://127.0.0.1:${port},nats://127.0.0.1:${proxy.port}`,
    });
    await tried;
    proxy.restore();
    const triedAt = performance.now();
    await connecting;
    expect(performance.now() - triedAt).toBeLessThan(soonMs);
    for (const socket of sockets) socket.destroy();
    silent.close();
  });

  test("delays a reconnect by a few seconds", async () => {
    await using buses = await startBuses();
    await using one = await startTcpProxy(buses.server.port);
    await using other = await startTcpProxy(buses.server.port);
    const bus = await buses.connect("caller", {
      url: `nats://127.0.0.1:${one.port},nats://127.0.0.1:${other.port}`,
    });
    const [current, next] = bus[natsConnection].getServer().endsWith(`:${one.port}`)
      ? [one, other]
      : [other, one];
    const back = new Promise<void>((resolve) => bus.onReconnect(resolve));
    const lostAt = performance.now();
    next.stall();
    // The client tries the next server of the list before the one that it lost.
    current.cut();
    current.restore();
    await back;
    expect(performance.now() - lostAt).toBeLessThan(soonMs);
  });
});
