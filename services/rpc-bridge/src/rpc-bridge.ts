import type { Json } from "@devmesh/contracts/model/json";
import { callSource } from "@devmesh/contracts/mqtt";
import type { CallAttempt, rpcBridge, rpcEvents } from "@devmesh/contracts/rpc-bridge";
import type { CallLine, DeviceLink, DeviceLinkOptions } from "@devmesh/device-broker/device-link";
import type { Clock } from "@devmesh/service-kit/clock";
import type { Publisher } from "@devmesh/service-kit/events/publisher";
import type { CallContext, Context } from "@devmesh/service-kit/rpc/context";
import type { Implementation } from "@devmesh/service-kit/rpc/implementation";
import { recordSpan, type SpanDescription, type Tracer } from "@devmesh/service-kit/tracing/tracer";
import type { EndSessions, WipeDevice } from "./broker-housekeeping/wipe-device.ts";
import { encodeRequest, parseReply } from "./calls/frame.ts";
import type { CallOutcome, InFlightCalls } from "./calls/in-flight-calls.ts";
import type { DevicesClient } from "./devices-client.ts";
import type { BridgeMetrics } from "./metrics.ts";

type Bridge = Implementation<typeof rpcBridge>;

/** The context of a call. */
type CallMethod = Context<typeof rpcBridge, "call">;

/**
 * Devices that are online as far as this process knows: `devices` has confirmed it, and no event since says otherwise.
 * A call to one that has just left has no subscriber, which the broker reports; then `devices` is asked again.
 */
type OnlineDevices = Pick<Set<string>, "has" | "add" | "delete">;

/**
 * When the nats-servers are asked about a device that is online to `devices` and does not subscribe, in milliseconds:
 * it moves to another one within a second, and the one that it leaves may report no disconnect (ADR 27).
 */
const askAfterMs = 500;
const askEveryMs = 1_000;

/** Listings in a row that must miss a device before it counts as gone: a busy nats-server may be missing from one. */
const missesUntilGone = 2;

/** Waits before a frame is sent again, in milliseconds, doubled from the first. */
const firstPauseMs = 50;
const longestPauseMs = 500;

export interface RpcBridgeOptions {
  readonly calls: InFlightCalls;
  readonly devices: Pick<DevicesClient, "readPresence" | "readConnections">;
  readonly online: OnlineDevices;
  readonly link: DeviceLink;
  readonly publisher: Publisher<typeof rpcEvents>;
  readonly endSessions: EndSessions;
  readonly wipe: WipeDevice;
  readonly metrics: BridgeMetrics;
  readonly tracer: Tracer | undefined;
  readonly clock: Clock;
  /** Messages that the broker stores for the bridge; rejects while it cannot be asked. */
  readonly backlog: () => Promise<number>;
  /** Topic level of the replies to this replica. */
  readonly replica: string;
  readonly maxFrameBytes: number;
}

/** The use cases of the contract. */
export function createRpcBridge(options: RpcBridgeOptions): Bridge {
  const { calls, link, publisher, endSessions, wipe, metrics, clock } = options;
  const { replica, maxFrameBytes } = options;

  const delivery = createCallDelivery(options);

  function publishCall(sent: { id: string; func: string; params?: Json }, call: CallContext): void {
    const timestamp = clock.now().toISOString();
    if (publisher.rpc_in({ ...sent, timestamp }, { call }) !== "ok") metrics.callEventsDropped.inc();
  }

  return {
    async call({ device_id, method, params, timeout_ms }, context) {
      const call = calls.open(device_id, timeout_ms) ?? context.fail("too_many_calls");
      context.signal.addEventListener("abort", call.abandon, { once: true });
      let line: CallLine | undefined;
      try {
        const given = params === undefined ? {} : { params };
        const request = { id: call.id, src: callSource(device_id, replica), method, ...given };
        const frame = encodeRequest(request, maxFrameBytes) ?? context.fail("frame_too_large");
        const ended = await delivery.unlessOnline(device_id, call.outcome, context);
        if (ended !== null) return { result: resultOf(ended, context) };
        return await recordSpan(
          options.tracer,
          deviceCallSpan(device_id, method),
          context.trace,
          async () => {
            await link.awaitConnection(context.signal);
            line = (await link.openCall(device_id, call.id)) ?? context.fail("broker_unreachable");
            const undelivered = line.send(frame) ?? context.fail("broker_unreachable");
            publishCall({ id: device_id, func: method, ...given }, context);
            const outcome =
              (await Promise.race([call.outcome, undelivered])) ??
              (await delivery.sendAgain(device_id, line.send, frame, call.outcome, context));
            return { result: resultOf(outcome, context) };
          },
        );
      } finally {
        call.abandon();
        line?.[Symbol.dispose]();
      }
    },
    async attemptCall({ device_id, method, params, timeout_ms, quiet = false }, context) {
      const call = calls.open(device_id, timeout_ms);
      if (call === null) return { sent: false, outcome: "busy" };
      context.signal.addEventListener("abort", call.abandon, { once: true });
      using line = await link.openCall(device_id, call.id);
      try {
        const given = params === undefined ? {} : { params };
        const request = { id: call.id, src: callSource(device_id, replica), method, ...given };
        const frame = encodeRequest(request, maxFrameBytes);
        if (frame === null) return { sent: false, outcome: "too_large" };
        const span = deviceCallSpan(device_id, method);
        return await recordSpan(options.tracer, span, context.trace, async () => {
          const undelivered = line?.send(frame) ?? null;
          if (undelivered === null) return { sent: false, outcome: "no_broker" };
          if (!quiet) publishCall({ id: device_id, func: method, ...given }, context);
          const outcome = await Promise.race([call.outcome, undelivered]);
          return outcome === null ? { sent: false, outcome: "nobody_listens" } : attemptOf(outcome);
        });
      } finally {
        call.abandon();
      }
    },
    async endSessions({ device_id, client_ids }, context) {
      await endSessions(device_id, client_ids, context.signal);
      return {};
    },
    async wipeDevice({ device_id, client_ids }, context) {
      await wipe(device_id, client_ids, context);
      return {};
    },
    async readBacklog(_input, context) {
      return { waiting: await options.backlog().catch(() => context.fail("backlog_unknown")) };
    },
  };
}

/** Delivers calls to devices that are moving from one nats-server to another. */
function createCallDelivery({
  devices,
  online,
  link,
  clock,
}: Pick<RpcBridgeOptions, "devices" | "online" | "link" | "clock">) {
  /** By device: calls share a listing, which asks each nats-server. */
  const listings = new Map<string, Promise<boolean>>();

  async function readPresence(id: string, context: CallMethod): Promise<boolean> {
    const isOnline = (await devices.readPresence({ id }, context)).online;
    if (isOnline) online.add(id);
    return isOnline;
  }

  /** Asks the nats-servers; true when they cannot be asked. */
  function isConnected(id: string, context: CallMethod): Promise<boolean> {
    const known = listings.get(id);
    if (known !== undefined) return known;
    const listing = devices
      .readConnections({ id }, context)
      .then(({ client_ids }) => client_ids.length > 0)
      .catch(() => true)
      .finally(() => listings.delete(id));
    listings.set(id, listing);
    return listing;
  }

  /** Asks `devices` only about a device that is not known to be online. Null if it is, else how the call ends. */
  async function unlessOnline(
    id: string,
    outcome: Promise<CallOutcome>,
    context: CallMethod,
  ): Promise<CallOutcome | null> {
    if (online.has(id)) return null;
    // The call's timeout also bounds the wait for `devices`.
    const answer = await Promise.race([readPresence(id, context), outcome]);
    if (answer === true) return null;
    return answer === false ? { kind: "offline" } : answer;
  }

  /**
   * Sends a frame that nobody received again until a client of the device receives it: a call runs at most once. Ends
   * as `offline` when the device has no connection and does not return.
   */
  async function sendAgain(
    id: string,
    send: CallLine["send"],
    frame: Buffer,
    outcome: Promise<CallOutcome>,
    context: CallMethod,
  ): Promise<CallOutcome> {
    let askAtMs = clock.monotonicMs() + askAfterMs;
    let misses = 0;
    let isAsking = false;
    for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(2 * pauseMs, longestPauseMs)) {
      online.delete(id);
      const ended = await unlessOnline(id, outcome, context);
      if (ended !== null) return ended;
      if (misses >= missesUntilGone) return { kind: "offline" };
      if (!isAsking && clock.monotonicMs() > askAtMs) {
        isAsking = true;
        void isConnected(id, context).then((isListed) => {
          isAsking = false;
          askAtMs = clock.monotonicMs() + askEveryMs;
          // One that is connected may still subscribe.
          misses = isListed ? 0 : misses + 1;
        });
      }
      const early = await Promise.race([outcome, clock.sleep(pauseMs, context.signal)]);
      if (early !== undefined) return early;
      await link.awaitConnection(context.signal);
      const undelivered = send(frame) ?? context.fail("broker_unreachable");
      const later = await Promise.race([outcome, undelivered]);
      if (later !== null) return later;
    }
  }

  return { unlessOnline, sendAgain };
}

/** What is recorded of a call to a device, from its frame to the reply. */
function deviceCallSpan(deviceId: string, method: string): SpanDescription {
  return {
    name: "device call",
    kind: "client",
    attributes: { "rpc.system.name": "jsonrpc", "rpc.method": method, "devmesh.device.id": deviceId },
  };
}

function resultOf(outcome: CallOutcome, context: CallMethod) {
  switch (outcome.kind) {
    case "result":
      return outcome.result;
    case "no_such_function":
      return context.fail("function_not_found");
    case "error":
      return context.fail("device_error", { code: outcome.code, message: outcome.message });
    case "unreadable":
      return context.fail("bad_device_reply");
    case "timeout":
      return context.fail("rpc_timeout");
    case "offline":
      return context.fail("device_offline");
    case "deleted":
      return context.fail("device_not_found");
    case "restarting":
      return context.fail("bridge_restarting");
  }
}

/** What an attempt whose frame has left answers. */
function attemptOf(outcome: CallOutcome): CallAttempt {
  switch (outcome.kind) {
    case "result":
      return { sent: true, outcome: "result", result: outcome.result };
    case "error":
      return { sent: true, outcome: "error", error: { code: outcome.code, message: outcome.message } };
    case "offline":
    case "deleted":
      return { sent: true, outcome: "gone" };
    case "no_such_function":
    case "unreadable":
    case "timeout":
    case "restarting":
      return { sent: true, outcome: outcome.kind };
  }
}

/**
 * Settles calls with their replies. A reply counts only on a topic of the called device (api.md, MQTT), which alone may
 * publish there.
 */
export function replyHandler(calls: InFlightCalls, metrics: BridgeMetrics): DeviceLinkOptions["onReply"] {
  return (deviceId, payload) => {
    // The subscription outlives the calls for a moment.
    if (!calls.isWaitingFor(deviceId)) return metrics.repliesIgnored.inc({ why: "unexpected" });
    const reply = parseReply(payload);
    if (reply === null) return metrics.repliesIgnored.inc({ why: "unreadable" });
    if (!calls.settle(deviceId, reply.id, reply.reply)) metrics.repliesIgnored.inc({ why: "unexpected" });
  };
}
