import { setTimeout as sleep } from "node:timers/promises";
import { defineService } from "@devmesh/contracts/topology";
import { visits } from "@devmesh/testkit/sample-mesh/broker";
import { greeter, greetings } from "@devmesh/testkit/sample-mesh/greeter";
import { z } from "zod";
import { ServiceEnv } from "../src/process/env.ts";
import { runService } from "../src/process/run-service.ts";

/** A whole service, run as a process by run-service.test.ts. */
await runService({
  name: "greeter",
  declaration: defineService({
    serves: greeter,
    publishes: visits,
  }),
  env: ServiceEnv.extend({ FAIL: z.string().optional() }),
  async start({ env, publisher, log, signal }) {
    if (env.FAIL === "start") throw new Error("the store is damaged");
    if (env.FAIL === "later") setTimeout(() => void Promise.reject(new Error("nobody catches this")), 50);
    if (env.FAIL === "stopped") {
      process.kill(process.pid, "SIGTERM");
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
      // A store may take no notice of the signal.
      await sleep(500);
    }
    let open = true;
    return {
      implementation: greetings({
        wait: async ({ ms }, { deadline }) => {
          await publisher.visited({ id: "waiting", at: ms });
          // Ignores the signal: only the bound of the drain ends it.
          await deadline.clock.sleep(ms);
          return { waitedMs: open ? ms : -1 };
        },
      }),
      ready: () => open,
      stop: async () => log.info("stop was called"),
      close: async () => {
        open = false;
        log.info("store closed");
      },
    };
  },
});
