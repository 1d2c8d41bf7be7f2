import { type Bus, type BusOptions, connectBus } from "@devmesh/service-kit/bus";
import { natsConnection } from "@devmesh/service-kit/connection/nats-connection";
import { createLogger } from "@devmesh/service-kit/logger";
import { startNatsServer, type TestNatsServer } from "../nats-server.ts";

/** A nats-server and the buses a test opened on it; all of it ends together. */
export interface TestBuses extends AsyncDisposable {
  readonly server: TestNatsServer;
  connect(name: string, options?: Partial<BusOptions>): Promise<Bus>;
  stop(): Promise<void>;
}

/** A silent logger, or one that writes when `TEST_LOG` is set. */
export const testLog = createLogger({ service: "test", level: process.env.TEST_LOG ?? "silent" });

/** Starts a nats-server without users. */
export async function startBuses(options: Parameters<typeof startNatsServer>[0] = {}): Promise<TestBuses> {
  const server = await startNatsServer(options);
  const open: Bus[] = [];
  const stop = async () => {
    await Promise.all(open.map((bus) => bus[natsConnection].close()));
    await server.stop();
  };
  return {
    server,
    async connect(name, more = {}) {
      const bus = await connectBus({ url: server.url, name, log: testLog, ...more });
      open.push(bus);
      return bus;
    },
    stop,
    [Symbol.asyncDispose]: stop,
  };
}
