import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { executablesOnPath } from "@devmesh/launcher/nats-server/path-search";
import { repository } from "@devmesh/supervisor/mesh/service-process";
import { eventually } from "./eventually.ts";
import { freePort, isListening } from "./free-port.ts";
import { hasEnded, startProcess } from "./process.ts";

/** The configuration of the proxy that compose, Kubernetes and the documentation use. */
export const proxyConfig = join(repository, "k8s/components/mqtt-proxy/haproxy.cfg");

/** What a suite says that is skipped without HAProxy. */
export const withoutHaproxy = "no haproxy on PATH";

/** HAProxy on `PATH`; null without one. */
export async function findHaproxy(): Promise<string | null> {
  const [first] = await executablesOnPath("haproxy", process.env.PATH);
  return first ?? null;
}

/** Whether it bounds what a device sends: from 2.7 on. */
export async function boundsBandwidth(haproxy: string): Promise<boolean> {
  const { stdout } = await promisify(execFile)(haproxy, ["-v"]);
  const [major = 0, minor = 0] = (/version (\d+)\.(\d+)/.exec(stdout) ?? []).slice(1).map(Number);
  return major > 2 || (major === 2 && minor >= 7);
}

/** A running HAProxy in front of a broker. */
export interface TestMqttProxy extends AsyncDisposable {
  /** Where devices connect. */
  readonly port: number;
  readonly websocketPort: number;
  readonly pid: number;
  log(): string;
  /** Asks for a soft stop; resolves with the exit code. */
  stop(): Promise<number | null>;
}

/** Starts HAProxy with the configuration of the repository; `env` are its settings beside ports and broker. */
export async function startMqttProxy(
  binary: string,
  broker: { readonly port: number; readonly websocketPort?: number },
  env: Readonly<Record<string, string>> = {},
): Promise<TestMqttProxy> {
  const [port, websocketPort, opsPort] = [await freePort(), await freePort(), await freePort()];
  const running = startProcess(binary, ["-db", "-f", proxyConfig], {
    env: {
      MQTT_BIND: `:${port}`,
      MQTT_BROKER: `127.0.0.1:${broker.port}`,
      MQTT_WS_BIND: `:${websocketPort}`,
      MQTT_WS_BROKER: `127.0.0.1:${broker.websocketPort ?? broker.port}`,
      OPS_BIND: `127.0.0.1:${opsPort}`,
      ...env,
    },
  });
  const isUp = async () => {
    if (hasEnded(running.child)) throw new Error(`haproxy ended:\n${running.output()}`);
    return await isListening(opsPort);
  };
  await eventually(isUp).catch(async (error) => {
    await running.end("SIGKILL");
    throw error;
  });
  return {
    port,
    websocketPort,
    pid: running.child.pid ?? Number.NaN,
    log: running.output,
    stop: () => running.end("SIGUSR1"),
    [Symbol.asyncDispose]: () => running[Symbol.asyncDispose](),
  };
}
