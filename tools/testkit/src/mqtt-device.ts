import { type CallFrame, deviceTopics, replyTopicOf } from "@devmesh/contracts/mqtt";
import { connectDevice, type DeviceLogin } from "@devmesh/simulator/device-connection";
import type { IClientOptions, MqttClient, OnMessageCallback } from "mqtt";
import { defaultPatienceMs, eventually } from "./eventually.ts";

/** What a device received, in order of arrival. */
export interface ReceivedMessage {
  readonly topic: string;
  readonly payload: string;
  readonly qos: number;
  readonly retained: boolean;
}

/** A device's answer to a call; null for none. */
export type RpcAnswer = { result?: unknown } | { error: { code: number; message?: string } } | null;

/** Topic of replies: `<src>/rpc` as Mongoose OS does, or `ID/r/rpc` as mDash firmware does. */
export type ReplyConvention = "mongoose-os" | "mdash";

/** A real MQTT 3.1.1 connection of one device, for tests. */
export interface MqttDevice extends AsyncDisposable {
  readonly id: string;
  readonly client: MqttClient;
  /** All messages received so far. */
  readonly messages: readonly ReceivedMessage[];
  /** Subscribes; resolves with the granted QoS, 128 for a refusal. */
  subscribe(topic: string, qos?: 0 | 1): Promise<number>;
  /** Publishes; at QoS 1 and 2 waits until the broker has acknowledged. */
  publish(topic: string, payload: unknown, qos?: 0 | 1 | 2, retain?: boolean): Promise<void>;
  /** The first message that fits, received already or within the bound (default {@link defaultPatienceMs}). */
  awaitMessage(
    fits: string | ((message: ReceivedMessage) => boolean),
    withinMs?: number,
  ): Promise<ReceivedMessage>;
  /** Forgets what has been received. */
  forget(): void;
  /** Subscribes `ID/rpc` and answers each call. */
  answerRpc(
    answer: (frame: CallFrame) => RpcAnswer | Promise<RpcAnswer>,
    convention?: ReplyConvention,
  ): Promise<void>;
  /** Resolves when the broker has closed the connection. */
  closed(): Promise<void>;
  /** Leaves with a DISCONNECT. */
  leave(): Promise<void>;
  /** Drops the TCP connection without DISCONNECT. */
  vanish(): void;
}

/**
 * Connects as a device; throws when the broker refuses. Payloads other than strings and Buffers are sent as JSON. It
 * does not reconnect by itself.
 */
export async function connectMqttDevice(
  login: DeviceLogin,
  options: IClientOptions = {},
): Promise<MqttDevice> {
  const messages: ReceivedMessage[] = [];
  const take: OnMessageCallback = (topic, payload, packet) => {
    messages.push({ topic, payload: payload.toString("utf8"), qos: packet.qos, retained: packet.retain });
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
    async awaitMessage(wanted, withinMs = defaultPatienceMs) {
      const fits =
        typeof wanted === "string" ? (message: ReceivedMessage) => message.topic === wanted : wanted;
      return await eventually(() => messages.find(fits), { withinMs, everyMs: 5 }).catch((cause) => {
        const seen = messages.map(({ topic }) => topic).join(", ") || "none";
        throw new Error(`${login.id} did not receive the awaited message in ${withinMs} ms; seen: ${seen}`, {
          cause,
        });
      });
    },
    forget() {
      messages.length = 0;
    },
    async answerRpc(answer, convention = "mongoose-os") {
      const calls = deviceTopics.call(login.id);
      client.on("message", (topic, payload) => {
        if (topic !== calls) return;
        const frame: CallFrame = JSON.parse(payload.toString("utf8"));
        const replyTopic =
          convention === "mdash" ? deviceTopics.replyWithoutSource(login.id) : replyTopicOf(frame.src);
        const reply = async () => {
          const given = await answer(frame);
          if (given) await device.publish(replyTopic, { id: frame.id, ...given });
        };
        reply().catch(() => {
          // A device that has left cannot answer any more.
        });
      });
      const granted = await device.subscribe(calls);
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
