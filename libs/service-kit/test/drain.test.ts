import { startBuses } from "@devmesh/testkit/sample-mesh/buses";
import { everyMethod, greeter, greetings } from "@devmesh/testkit/sample-mesh/greeter";
import { describe, expect, test } from "@jest/globals";
import { createClient } from "../src/rpc/client.ts";
import { createCallContext } from "../src/rpc/context.ts";
import { serve } from "../src/rpc/serve.ts";

/** A promise and its resolver. */
function signalled() {
  return Promise.withResolvers<void>();
}

describe("draining", () => {
  test("finishes running calls, and later ones find nobody", async () => {
    await using buses = await startBuses();
    const serving = await buses.connect("greeter");
    const client = createClient(await buses.connect("caller"), everyMethod);
    const begun = signalled();
    const go = signalled();
    const served = serve(
      serving,
      greeter,
      greetings({
        wait: async () => {
          begun.resolve();
          await go.promise;
          return { waitedMs: 1 };
        },
      }),
    );
    await serving.flush();
    const running = client.wait({ ms: 1 }, createCallContext({ timeoutMs: 30_000 }));
    await begun.promise;
    const drained = served.drain(5_000);
    await serving.flush();
    await expect(client.wait({ ms: 1 }, createCallContext({ timeoutMs: 30_000 }))).rejects.toMatchObject({
      reason: "unavailable",
    });
    go.resolve();
    expect(await running).toEqual({ waitedMs: 1 });
    expect(await drained).toBe(0);
  });

  test("is bounded: what outlasts it is aborted and answered unavailable", async () => {
    await using buses = await startBuses();
    const serving = await buses.connect("greeter");
    const client = createClient(await buses.connect("caller"), everyMethod);
    const begun = signalled();
    const served = serve(
      serving,
      greeter,
      greetings({
        wait: () => {
          begun.resolve();
          return new Promise(() => undefined);
        },
      }),
    );
    await serving.flush();
    const running = client.wait({ ms: 1 }, createCallContext({ timeoutMs: 30_000 }));
    await begun.promise;
    const [unfinished] = await Promise.all([
      served.drain(20),
      expect(running).rejects.toMatchObject({ reason: "unavailable" }),
    ]);
    expect(unfinished).toBe(1);
  });
});
