import { setTimeout as sleep } from "node:timers/promises";
import { isJsonObject } from "@devmesh/contracts/model/json";
import { ShadowDelta } from "@devmesh/contracts/model/shadow";
import { CallFrame, deviceTopics, replyTopicOf } from "@devmesh/contracts/mqtt";
import type { MqttClient } from "mqtt";
import { connectDevice, type DeviceLogin } from "./device-connection.ts";
import { createDeviceFirmware } from "./firmware/device-firmware.ts";
import type { UpdateBehaviour } from "./firmware/update-behaviour.ts";
import { FunctionError } from "./function-error.ts";

/** A function of a device, called by RPC. The caller gets a {@link FunctionError} that it throws. */
export type DeviceFunction = (params: unknown) => unknown;

/** Records that a device publishes by itself. */
export interface Telemetry {
  /** Name of the record in its topic. */
  readonly topic: string;
  readonly everyMs: number;
  read(): unknown;
}

/** What a simulated device is. */
export interface DeviceModel {
  /** Shown by `Sys.GetInfo`. */
  readonly app: string;
  /** Version that `Sys.GetInfo` shows and that is reported as `ota.fw_version`; none is reported by default. */
  readonly firmware?: string;
  /** How it takes new firmware. */
  readonly update?: UpdateBehaviour;
  readonly functions: Readonly<Record<string, DeviceFunction>>;
  /** Initial reported state. */
  readonly reported: Readonly<Record<string, unknown>>;
  readonly telemetry: readonly Telemetry[];
  /** Called for each record that the broker has acknowledged. */
  readonly onRecord?: () => void;
  /** Called for each call, also of a function that it does not have. */
  readonly onCall?: () => void;
  /** Called once desired state has been adopted. */
  readonly onDesired?: (desired: Readonly<Record<string, unknown>>) => void;
}

/** A device that lives until it is stopped. */
export interface SimulatedDevice {
  readonly id: string;
  /** Reported state. */
  readonly reported: Readonly<Record<string, unknown>>;
  /** Changes reported state. */
  report(change: Readonly<Record<string, unknown>>): void;
  /** Whether it is connected now. */
  readonly connected: boolean;
  /** Cuts the connection without DISCONNECT; it connects again. */
  drop(): void;
  /** Publishes these bytes at QoS 1. */
  send(topic: string, payload: Buffer): void;
  stop(): Promise<void>;
}

const Delta = ShadowDelta.pick({ state: true });

/**
 * Starts a device that answers `RPC.List`, `Sys.GetInfo` and its own functions, adopts desired state, publishes its
 * telemetry and takes new firmware, over MQTT. It reconnects by itself. Throws when the first login fails.
 */
export async function startSimulatedDevice(login: DeviceLogin, model: DeviceModel): Promise<SimulatedDevice> {
  let startedAt = performance.now();
  const stopping = new AbortController();
  const { signal } = stopping;
  const initial = { ...(model.firmware && { ota: { fw_version: model.firmware } }), ...model.reported };
  const reported: Record<string, unknown> = { ...initial };
  const firmware = createDeviceFirmware({
    version: model.firmware ?? "1.0.0",
    behaviour: model.update ?? {},
    host: {
      report(change) {
        reported.ota = merge(reported.ota, change);
        publishReported({ ota: change });
      },
      drop: () => void client.stream.destroy(),
      async boot(awayMs) {
        await client.endAsync(true);
        await sleep(awayMs, undefined, { signal });
        startedAt = performance.now();
        client.reconnect();
        if (!client.connected) await new Promise((resolve) => client.once("connect", resolve));
        await subscribed;
      },
    },
    signal,
  });
  const functions: Record<string, DeviceFunction> = {
    ...model.functions,
    ...firmware.functions,
    "RPC.List": () => Object.keys(functions).sort(),
    "Sys.GetInfo": () => ({
      id: login.id,
      app: model.app,
      fw_version: firmware.version,
      arch: "simulated",
      uptime: Math.round((performance.now() - startedAt) / 1_000),
    }),
  };
  const publishReported = (change: Readonly<Record<string, unknown>>) =>
    publish(client, deviceTopics.shadowUpdate(login.id), { state: { reported: change } }, 1);
  const report = (change: Readonly<Record<string, unknown>>) => {
    Object.assign(reported, change);
    publishReported(change);
  };
  const adopt = ({ ota, ...desired }: Readonly<Record<string, unknown>>) => {
    if (ota !== undefined) firmware.desire(ota);
    if (Object.keys(desired).length === 0) return;
    const changed: Record<string, unknown> = {};
    for (const [member, value] of Object.entries(desired)) changed[member] = merge(reported[member], value);
    model.onDesired?.(changed);
    report(changed);
  };

  const calls = deviceTopics.call(login.id);
  const delta = deviceTopics.shadowDelta(login.id);
  const client = await connectDevice(
    login,
    (topic, payload) => {
      const received = parse(payload);
      if (topic === calls) {
        const frame = CallFrame.safeParse(received).data;
        if (frame === undefined) return;
        model.onCall?.();
        void answer(client, functions, frame);
      } else if (topic === delta) {
        const changed = Delta.safeParse(received).data;
        if (changed) adopt(changed.state);
      }
    },
    // Where MQTT.js subscribes again by itself, it answers `subscribe` before the broker has done so.
    { reconnectPeriod: 1_000, resubscribe: false },
  );
  const subscribe = () => client.subscribeAsync([calls, delta], { qos: 1 });
  let subscribed: Promise<unknown> = subscribe();
  client.on("connect", () => {
    // A connection that is lost before the answer is followed by another one.
    subscribed = subscribe().catch(() => undefined);
  });
  await subscribed;
  report(initial);

  const timers = model.telemetry.map(({ topic, everyMs, read }) => {
    const send = () => publish(client, deviceTopics.record(login.id, topic), read(), 1, model.onRecord);
    send();
    return setInterval(send, everyMs);
  });
  return {
    id: login.id,
    reported,
    report,
    get connected() {
      return client.connected;
    },
    drop: () => void client.stream.destroy(),
    send: (topic, payload) => void client.publish(topic, payload, { qos: 1 }, () => {}),
    async stop() {
      stopping.abort();
      for (const timer of timers) clearInterval(timer);
      await client.endAsync(true);
    },
  };
}

async function answer(
  client: MqttClient,
  functions: Readonly<Record<string, DeviceFunction>>,
  { id, src, method, params }: CallFrame,
): Promise<void> {
  const reply = replyTopicOf(src);
  const called = Object.hasOwn(functions, method) ? functions[method] : undefined;
  if (!called)
    return publish(client, reply, { id, error: { code: 404, message: `No handler for ${method}` } }, 0);
  try {
    publish(client, reply, { id, result: (await called(params)) ?? null }, 0);
  } catch (error) {
    const code = error instanceof FunctionError ? error.code : 500;
    const message = error instanceof Error ? error.message : "failed";
    publish(client, reply, { id, error: { code, message } }, 0);
  }
}

/** Calls `taken` once the broker has acknowledged a message of QoS 1. */
function publish(client: MqttClient, topic: string, message: unknown, qos: 0 | 1, taken?: () => void): void {
  // A message that cannot be sent is lost, as on a device without memory.
  client.publish(topic, JSON.stringify(message), { qos }, (error) => {
    if (!error) taken?.();
  });
}

function parse(payload: Buffer): unknown {
  try {
    return JSON.parse(payload.toString("utf8"));
  } catch {
    return undefined;
  }
}

/** RFC 7396, as the shadow itself merges. */
function merge(target: unknown, patch: unknown): unknown {
  if (!isJsonObject(patch)) return patch;
  const merged: Record<string, unknown> = isJsonObject(target) ? { ...target } : {};
  for (const [member, value] of Object.entries(patch)) {
    if (value === null) delete merged[member];
    else merged[member] = merge(merged[member], value);
  }
  return merged;
}
