import { setTimeout as sleep } from "node:timers/promises";
import { deviceTopics } from "@devmesh/contracts/mqtt";
import { subjectOf } from "@devmesh/device-broker/device-topic";
import { eventually } from "./eventually.ts";
import { freePort } from "./free-port.ts";
import { connectMqttDevice, type MqttDevice } from "./mqtt-device.ts";
import { connectNats, type NatsTestConnection } from "./nats-connection.ts";
import { startNatsServer, type TestNatsServer } from "./nats-server.ts";

/** How long and how hard devices that come and go are sent frames. */
export interface FrameDeliveryTrial {
  readonly devices: number;
  readonly forMs: number;
  /** Devices subscribe up to so long after connecting, and stay up to so long. */
  readonly longestPauseMs: number;
  /** One of the three servers is killed so often, and restarted after a second. */
  readonly kills: number;
}

/** What became of the frames. */
export interface FrameDeliveries {
  readonly sent: number;
  readonly received: number;
  /** The broker reported that it delivered the frame to no client. */
  readonly reported: number;
  /** Neither received nor reported: lost on the way, or with a connection. */
  readonly unknown: number;
  /** Reported, and received all the same. Must be empty. */
  readonly reportedAndReceived: readonly string[];
  /** Received more than once. Must be empty. */
  readonly repeated: readonly string[];
}

/** Frames to all devices are sent so far apart, in milliseconds. */
const roundMs = 20;

/** After the last frame: longer than any frame or report is on its way. */
const quietMs = 2_000;

/**
 * Sends frames by NATS requests on `ID.rpc` over three clustered servers to devices that connect to any of them,
 * subscribe late, take their own sessions over, vanish, and return to kept sessions (ADR 32).
 */
export async function tryFrameDelivery(trial: FrameDeliveryTrial): Promise<FrameDeliveries> {
  const servers = await startServers();
  const received = new Map<string, number>();
  const reported = new Set<string>();
  const stopping = new AbortController();
  let sent = 0;
  try {
    const senders = await Promise.all(
      servers.map((server) => keepSender(server, (token) => void reported.add(token), stopping.signal)),
    );
    const ids = Array.from({ length: trial.devices }, (_, nth) => `d${nth}`);
    const take = (frame: string) => void received.set(frame, (received.get(frame) ?? 0) + 1);
    const lives = ids.map((id) => liveAndDie(id, servers, trial.longestPauseMs, take, stopping.signal));
    const killing = killInTurn(servers, trial);
    for (const end = performance.now() + trial.forMs; performance.now() < end; await sleep(roundMs)) {
      for (const id of ids) if (anyOf(senders)(id, String(sent))) sent++;
    }
    await killing;
    await sleep(quietMs);
    stopping.abort();
    await Promise.all(lives);
  } finally {
    stopping.abort();
    await Promise.all(servers.map((server) => server.stop()));
  }
  return {
    sent,
    received: received.size,
    reported: reported.size,
    unknown: sent - new Set([...received.keys(), ...reported]).size,
    reportedAndReceived: [...reported].filter((frame) => received.has(frame)),
    repeated: [...received].filter(([, times]) => times > 1).map(([frame]) => frame),
  };
}

async function startServers(): Promise<TestNatsServer[]> {
  const routes = await Promise.all([freePort(), freePort(), freePort()]);
  const urls = routes.map((route) => `"nats://127.0.0.1:${route}"`);
  const servers = await Promise.all(
    routes.map((route, nth) =>
      startNatsServer({
        config: ({ port, mqttPort, storeDir }) => `
          server_name: "trial-${nth}"
          listen: "127.0.0.1:${port}"
          jetstream { store_dir: ${JSON.stringify(storeDir)} }
          mqtt { listen: "127.0.0.1:${mqttPort}", stream_replicas: 3 }
          accounts {
            DEVICES { jetstream: enabled, users: [ { user: trial, password: trial } ] }
            SYS { users: [ { user: sys, password: sys } ] }
          }
          system_account: SYS
          cluster { name: trial, listen: "127.0.0.1:${route}", routes: [${urls}] }`,
      }),
    ),
  );
  // The first login of each server makes or finds the broker's streams, once there is a leader.
  for (const server of servers)
    await eventually(async () => void (await (await connect("d", server, true)).leave()) === undefined, {
      everyMs: 250,
    });
  return servers;
}

function connect(id: string, { mqttUrl }: TestNatsServer, clean: boolean): Promise<MqttDevice> {
  const login = { url: mqttUrl, id: "trial", token: "trial", clientId: id };
  return connectMqttDevice(login, { clean, connectTimeout: 3_000 });
}

/** Sends one frame; false without a connection. */
type SendFrame = (id: string, frame: string) => boolean;

/** A connection to one server, made again after a kill; what a lost one had sent stays without a report. */
async function keepSender(
  server: TestNatsServer,
  onReport: (token: string) => void,
  signal: AbortSignal,
): Promise<SendFrame> {
  let connection: NatsTestConnection | null = null;
  const open = async () => {
    const fresh = await connectNats({ port: server.port, user: "trial", password: "trial" });
    await fresh.subscribe(`_INBOX.trial.${server.port}.*`, ({ subject, headers }) => {
      if (headers.Status === "503") onReport(subject.split(".").at(-1) ?? "");
    });
    connection = fresh;
  };
  await open();
  const watch = async () => {
    while (!signal.aborted) {
      await connection?.flush().catch(() => {
        connection = null;
      });
      if (connection === null) await open().catch(() => undefined);
      await sleep(100);
    }
    await connection?.close();
  };
  void watch();
  return (id, frame) => {
    connection?.publish(subjectOf(deviceTopics.call(id)), frame, `_INBOX.trial.${server.port}.${frame}`);
    return connection !== null;
  };
}

/** One life after another: each ends by leaving, vanishing, unsubscribing, or when the next one takes it over. */
async function liveAndDie(
  id: string,
  servers: readonly TestNatsServer[],
  longestPauseMs: number,
  take: (frame: string) => void,
  signal: AbortSignal,
): Promise<void> {
  // One in all lives: a kept session with both would get each frame twice.
  const topic = anyOf([deviceTopics.call(id), `${id}/#`]);
  let last: MqttDevice | null = null;
  while (!signal.aborted) {
    // The broker closes the connection of the same client id that this one takes over.
    const device = await connect(id, anyOf(servers), chance(0.7)).catch(() => null);
    last?.vanish();
    last = null;
    if (device === null) {
      await sleep(100);
      continue;
    }
    device.client.on("message", (_topic, payload) => take(payload.toString("utf8")));
    // Each of these waits for ever on a connection that is lost.
    const unlessClosed = (work: Promise<unknown>) =>
      Promise.race([work.catch(() => undefined), device.closed()]);
    await sleep(Math.random() * longestPauseMs);
    await unlessClosed(device.subscribe(topic, anyOf([0, 1])));
    await sleep(Math.random() * longestPauseMs);
    const end = anyOf(["leave", "vanish", "unsubscribe", "taken over"]);
    if (end === "unsubscribe") await unlessClosed(device.client.unsubscribeAsync(topic));
    if (end === "leave") await unlessClosed(device.leave());
    if (end === "taken over") last = device;
    else device.vanish();
  }
  last?.vanish();
}

async function killInTurn(servers: readonly TestNatsServer[], { kills, forMs }: FrameDeliveryTrial) {
  for (let kill = 0; kill < kills; kill++) {
    await sleep(forMs / (kills + 1));
    const victim = servers[kill % servers.length];
    await victim?.kill();
    await sleep(1_000);
    await victim?.restart();
  }
}

function chance(of: number): boolean {
  return Math.random() < of;
}

function anyOf<T>(values: readonly T[]): T {
  return values[Math.floor(Math.random() * values.length)] as T;
}
