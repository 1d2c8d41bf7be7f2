import { randomBytes } from "node:crypto";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { installationOf, meshBrokerConfig } from "@devmesh/supervisor/mesh/broker-configuration";
import { eventually } from "./eventually.ts";
import { freePort } from "./free-port.ts";
import { type NatsServerPlace, startNatsServer, type TestNatsServer } from "./nats-server.ts";

/** Servers of a cluster, and replicas of each stream. */
const SIZE = 3;

/** Time until a crashed server is restarted, in milliseconds. */
const AWAY_MS = 1_000;

/** Three nats-servers in one cluster, each configured as the mesh's own, each in another folder. */
export interface TestCluster extends AsyncDisposable {
  readonly servers: readonly TestNatsServer[];
  /** Passwords by name: `<service>` of the user in MESH, `<service>.devices` of the one in DEVICES. */
  readonly passwords: Readonly<Record<string, string>>;
  /** The environment of a launcher on the cluster, whose data folder has the same installation. */
  readonly env: { readonly NATS_URL: string; readonly MQTT_URL: string; readonly STREAM_REPLICAS: string };
  /** The server that leads a stream; waits for an election. */
  leaderOf(account: "MESH" | "DEVICES", stream: string): Promise<TestNatsServer>;
  /** Number of servers with a copy of a stream. */
  replicasOf(account: "MESH" | "DEVICES", stream: string): Promise<number>;
  /** Resolves when each server is up to date, so that another one may stop. */
  caughtUp(): Promise<void>;
  /** Kills a server (default SIGKILL) and restarts it after a second; resolves when it is dead. */
  crash(server: TestNatsServer, signal?: NodeJS.Signals): Promise<void>;
  /** Ends the servers; their files stay. */
  stop(): Promise<void>;
}

/**
 * Starts a cluster with the installation of the data folder, which is made if it is missing; files are in
 * `dataDir/jetstream`. Resolves when the servers have a leader.
 */
export async function startCluster(dataDir: string): Promise<TestCluster> {
  await mkdir(dataDir, { recursive: true, mode: 0o700 });
  const installation = await installationOf(join(dataDir, "installation.json"));
  const password = randomBytes(16).toString("hex");
  const members = await Promise.all(
    Array.from({ length: SIZE }, async (_, at) => ({
      name: `nats-${at}`,
      routePort: await freePort(),
      monitorPort: await freePort(),
    })),
  );
  const routes = members.map(({ routePort }) => `nats-route://127.0.0.1:${routePort}`);
  const start = ({ name, routePort, monitorPort }: (typeof members)[number]) =>
    startNatsServer({
      storeDir: join(dataDir, "jetstream", name),
      config: ({ port, mqttPort, storeDir }: NatsServerPlace) =>
        meshBrokerConfig(
          {
            host: "127.0.0.1",
            ports: { nats: port, mqtt: mqttPort, monitor: monitorPort },
            storeDir,
            serverName: name,
            cluster: { name: "devmesh", port: routePort, routes, user: "route", password },
            mqttReplicas: SIZE,
          },
          installation,
        ),
    });
  const started = await Promise.allSettled(members.map(start));
  const servers = started.filter((result) => result.status === "fulfilled").map(({ value }) => value);
  const returning = new Set<Promise<void>>();
  let stopped = false;

  async function ask(path: string): Promise<unknown[]> {
    return await Promise.all(
      members
        .map(async ({ monitorPort }) => {
          const answer = await fetch(`http://127.0.0.1:${monitorPort}${path}`, {
            signal: AbortSignal.timeout(2_000),
          });
          return answer.ok ? await answer.json() : null;
        })
        .map((asked) => asked.catch(() => null)),
    );
  }

  async function copiesOf(account: string, stream: string): Promise<(StreamCopy | undefined)[]> {
    const reports = (await ask(`/jsz?acc=${account}&streams=true`)) as (AccountReport | null)[];
    return reports.map((report) =>
      (report?.account_details ?? [])
        .flatMap(({ stream_detail = [] }) => stream_detail)
        .find(({ name }) => name === stream),
    );
  }

  async function caughtUp() {
    await eventually(async () => (await ask("/healthz")).every((health) => health !== null), {
      everyMs: 200,
    });
  }

  async function stop() {
    stopped = true;
    await Promise.all([...returning]);
    await Promise.all(servers.map((server) => server.stop()));
  }

  try {
    const failed = started.find((result) => result.status === "rejected");
    if (failed) throw failed.reason;
    await caughtUp();
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    servers,
    passwords: installation.passwords,
    env: {
      NATS_URL: servers.map(({ url }) => url).join(","),
      MQTT_URL: servers.map(({ mqttUrl }) => mqttUrl).join(","),
      STREAM_REPLICAS: String(SIZE),
    },
    leaderOf: (account, stream) =>
      eventually(
        async () => {
          const copies = await copiesOf(account, stream);
          // Only its own report counts: the others still name a leader that has just died.
          return servers[members.findIndex(({ name }, at) => copies[at]?.cluster?.leader === name)];
        },
        { everyMs: 100 },
      ),
    async replicasOf(account, stream) {
      return (await copiesOf(account, stream)).filter((copy) => copy !== undefined).length;
    },
    caughtUp,
    async crash(server, signal = "SIGKILL") {
      await server.kill(signal);
      // A server that does not come back fails the test that needs it.
      const back = sleep(AWAY_MS)
        .then(() => (stopped ? undefined : server.restart()))
        .catch(() => undefined);
      returning.add(back);
      void back.finally(() => returning.delete(back));
    },
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

/** A server's copy of a stream in `/jsz`. */
interface StreamCopy {
  readonly name: string;
  readonly cluster?: { readonly leader?: string };
}

interface AccountReport {
  readonly account_details?: readonly { readonly stream_detail?: readonly StreamCopy[] }[];
}
