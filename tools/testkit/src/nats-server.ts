import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { findNatsServer } from "@devmesh/launcher/nats-server/find-nats-server";
import { guardAgainstOwnDeath, type ParentDeathGuard } from "@devmesh/supervisor/process/parent-death-guard";
import { eventually } from "./eventually.ts";
import { freePort, isListening, onFreePorts } from "./free-port.ts";
import { hasEnded } from "./process.ts";
import { tempFolder } from "./temp-folder.ts";

/** Free ports and a folder of a test's nats-server. */
export interface NatsServerPlace {
  readonly port: number;
  readonly mqttPort: number;
  readonly websocketPort: number;
  /** Folder of JetStream's files. */
  readonly storeDir: string;
}

/** How a nats-server is started. */
export interface NatsServerOptions {
  /** Text: appended to a configuration with a listener, and JetStream and MQTT as below. Function: the whole one. */
  readonly config?: string | ((place: NatsServerPlace) => string);
  /** JetStream in `storeDir`; default false. Without effect when `config` is a function, like `mqtt`. */
  readonly jetstream?: boolean;
  /** An MQTT listener, which needs JetStream; default false. */
  readonly mqtt?: boolean;
  /** A folder that outlives the server; without it, a temporary one. */
  readonly storeDir?: string;
}

/** A real nats-server of one test or suite. It dies with the process of the test. */
export interface TestNatsServer extends AsyncDisposable, NatsServerPlace {
  /** `nats://127.0.0.1:PORT`. */
  readonly url: string;
  /** `mqtt://127.0.0.1:MQTT_PORT`, if the configuration has an MQTT listener. */
  readonly mqttUrl: string;
  /** Process id of the server that runs now. */
  readonly pid: number;
  /** All that the server logged so far, over restarts. */
  log(): string;
  /** Sends a signal (default SIGKILL) and waits for the end of the process. */
  kill(signal?: NodeJS.Signals): Promise<void>;
  /** Restarts it on the same ports and files. */
  restart(): Promise<void>;
  /** Ends the server and removes what it stored. */
  stop(): Promise<void>;
}

/** Path of the nats-server that tests run. */
export async function natsServerBinary(): Promise<string> {
  return (await findNatsServer({ env: process.env })).path;
}

/** Starts nats-server on free ports of 127.0.0.1 and waits until it listens; throws with its log when it does not. */
export async function startNatsServer(options: NatsServerOptions = {}): Promise<TestNatsServer> {
  return await onFreePorts(() => startServerOnce(options));
}

async function startServerOnce(options: NatsServerOptions): Promise<TestNatsServer> {
  const binary = await natsServerBinary();
  const folder = await tempFolder();
  const place: NatsServerPlace = {
    port: await freePort(),
    mqttPort: await freePort(),
    websocketPort: await freePort(),
    storeDir: options.storeDir ?? join(folder.path, "jetstream"),
  };
  const configuration = configurationOf(options, place);
  const configFile = join(folder.path, "nats-server.conf");
  await writeFile(configFile, configuration, { mode: 0o600 });
  const ports = [place.port, place.mqttPort].filter((port) =>
    new RegExp(`\\b${port}\\b`).test(configuration),
  );

  let log = "";
  let child: ChildProcess | null = null;
  let guard: ParentDeathGuard | null = null;

  async function start() {
    guard = guardAgainstOwnDeath();
    const server = spawn(binary, ["--config", configFile], {
      stdio: ["ignore", "ignore", "pipe"],
      detached: true,
    });
    child = server;
    server.stderr.setEncoding("utf8").on("data", (text: string) => {
      log += text;
    });
    if (server.pid !== undefined) guard.watch(server.pid);
    await eventually(
      async () => {
        if (hasEnded(server)) return "ended";
        for (const port of ports) if (!(await isListening(port))) return false;
        return "listens";
      },
      { everyMs: 10 },
    );
    if (hasEnded(server)) throw new Error(`nats-server did not start:\n${log}`);
  }

  async function kill(signal: NodeJS.Signals = "SIGKILL") {
    guard?.release();
    guard = null;
    if (!child || hasEnded(child)) return;
    const ended = once(child, "exit");
    child.kill(signal);
    await ended;
  }

  async function stop() {
    await kill("SIGKILL");
    await folder.remove();
  }

  try {
    await start();
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    ...place,
    url: `nats://127.0.0.1:${place.port}`,
    mqttUrl: `mqtt://127.0.0.1:${place.mqttPort}`,
    get pid() {
      return child?.pid ?? Number.NaN;
    },
    log: () => log,
    kill,
    async restart() {
      await kill("SIGTERM");
      await start();
    },
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

function configurationOf({ config, jetstream, mqtt }: NatsServerOptions, place: NatsServerPlace): string {
  if (typeof config === "function") return config(place);
  return [
    `server_name: test-${place.port}`,
    `listen: "127.0.0.1:${place.port}"`,
    jetstream || mqtt ? `jetstream { store_dir: ${JSON.stringify(place.storeDir)} }` : "",
    mqtt ? `mqtt { listen: "127.0.0.1:${place.mqttPort}" }` : "",
    config ?? "",
  ].join("\n");
}
