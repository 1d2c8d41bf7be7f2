import { connectDevice, type DeviceLogin } from "@devmesh/simulator/device-connection";
import type { IClientOptions, MqttClient, OnMessageCallback } from "mqtt";
import { defaultPatienceMs } from "./eventually.ts";

/** What a device received, in order of arrival. */
export interface DeviceMessage {
  readonly topic: string;
  readonly payload: string;
  readonly qos: number;
  readonly retained: boolean;
}

/** An RPC frame as it reaches the device (api.md, MQTT). */
export interface RpcFrame {
  readonly id: number;
  readonly src: string;
  readonly method: string;
  readonly params?: unknown;
}

/** What a device answers to a call: `{result}` or `{error}`; null keeps silent. */
export type RpcAnswer = { result?: unknown } | { error: { code: number; message?: string } } | null;

/** Where a device sends its replies: `<src>/rpc` as Mongoose OS does, or `ID/r/rpc` as mDash firmware does. */
export type ReplyConvention = "mongoose-os" | "mdash";

/** A real MQTT 3.1.1 connection of one device, for tests. */
export interface MqttDevice extends AsyncDisposable {
  readonly id: string;
  readonly client: MqttClient;
  /** All messages received so far. */
  readonly messages: readonly DeviceMessage[];
  /** Subscribes and waits for the broker's answer: the granted QoS, 128 where it refused. */
  subscribe(topic: string, qos?: 0 | 1): Promise<number>;
  /** Publishes; at QoS 1 and 2 waits until the broker has acknowledged. */
  publish(topic: string, payload: unknown, qos?: 0 | 1 | 2, retain?: boolean): Promise<void>;
  /** The first message, received already or within the bound ({@link defaultPatienceMs} unless told), that fits. */
  awaitMessage(
    fits: string | ((message: DeviceMessage) => boolean),
    withinMs?: number,
  ): Promise<DeviceMessage>;
  /** Forgets what has been received. */
  forget(): void;
  /** Subscribes `ID/rpc` and answers each call. */
  answerRpc(
    answer: (frame: RpcFrame) => RpcAnswer | Promise<RpcAnswer>,
    convention?: ReplyConvention,
  ): Promise<void>;
  /** Resolves when the broker has closed the connection. */
  closed(): Promise<void>;
  /** Leaves with a DISCONNECT. */
  leave(): Promise<void>;
  /** Drops the TCP connection without a word. */
  vanish(): void;
}

/**
 * Connects as a device. Throws when the broker refuses the login. A payload that is neither a string nor a Buffer is
 * sent as JSON. It does not reconnect by itself.
 */
export async function connectMqttDevice(
  login: DeviceLogin,
  options: IClientOptions = {},
): Promise<MqttDevice> {
  const messages: DeviceMessage[] = [];
  const waiting = new Set<(message: DeviceMessage) => void>();
  const take: OnMessageCallback = (topic, payload, packet) => {
    const message = { topic, payload: payload.toString("utf8"), qos: packet.qos, retained: packet.retain };
    messages.push(message);
    for (const look of waiting) look(message);
  };
  const client = await connectDevice(login, take, { connectTimeout: defaultPatienceMs, ...options });

  const device: MqttDevice = {
    id: login.id,
    client,
    messages,
    async subscribe(topic, qos = 0) {
      return await new Promise<number>((resolve, reject) => {
        client.subscribe(topic, { qos }, (error, _grants, packet) => {
          const code = packet?.granted[0];
          if (typeof code === "number") resolve(code);
          else reject(error ?? new Error("the subscription was not answered"));
        });
      });
    },
    async publish(topic, payload, qos = 0, retain = false) {
      const body =
        typeof payload === "string" || Buffer.isBuffer(payload) ? payload : JSON.stringify(payload);
      await client.publishAsync(topic, body, { qos, retain });
    },
    awaitMessage(wanted, withinMs = defaultPatienceMs) {
      const fits = typeof wanted === "string" ? (message: DeviceMessage) => message.topic === wanted : wanted;
      const already = messages.find(fits);
      if (already) return Promise.resolve(already);
      return new Promise((resolve, reject) => {
        const look = (message: DeviceMessage) => {
          if (!fits(message)) return;
          clearTimeout(timer);
          waiting.delete(look);
          resolve(message);
        };
        const timer = setTimeout(() => {
          waiting.delete(look);
          const seen = messages.map(({ topic }) => topic).join(", ");
          reject(
            new Error(
              `${login.id} did not receive the awaited message in ${withinMs} ms; seen: ${seen || "none"}`,
            ),
          );
        }, withinMs);
        waiting.add(look);
      });
    },
    forget() {
      messages.length = 0;
    },
    async answerRpc(answer, convention = "mongoose-os") {
      client.on("message", (topic, payload) => {
        if (topic !== `${login.id}/rpc`) return;
        const frame: RpcFrame = JSON.parse(payload.toString("utf8"));
        const replyTopic = convention === "mdash" ? `${login.id}/r/rpc` : `${frame.src}/rpc`;
        const reply = async () => {
          const given = await answer(frame);
          if (given) await device.publish(replyTopic, { id: frame.id, ...given });
        };
        reply().catch(() => {
          // A device that has left cannot answer any more.
        });
      });
      const granted = await device.subscribe(`${login.id}/rpc`);
      if (granted > 2) throw new Error(`the broker refused ${login.id} its calls`);
    },
    async closed() {
      if (!client.connected) return;
      await new Promise<void>((resolve) => client.once("close", () => resolve()));
    },
    async leave() {
      await client.endAsync();
    },
    vanish() {
      client.stream.destroy();
      client.end(true);
    },
    async [Symbol.asyncDispose]() {
      await client.endAsync(true);
    },
  };
  return device;
}
