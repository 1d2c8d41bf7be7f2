import { describe, expect, test } from "@jest/globals";
import { createClient } from "../src/client.ts";
import { createCallContext } from "../src/context.ts";
import { serve } from "../src/serve.ts";
import { startBuses } from "./buses.ts";
import { everyMethod, greeter, greetings } from "./greeter.ts";

const call = () => createCallContext({ timeoutMs: 30_000 });

describe("without anybody to answer", () => {
  test("a call is unavailable at once", async () => {
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

describe("when the broker dies", () => {
  test("calls are unavailable at once, and work again when it is back, without anybody's doing", async () => {
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
