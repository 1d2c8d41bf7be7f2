import { callSource } from "@devmesh/contracts/mqtt";
import type { rpcBridge, rpcEvents } from "@devmesh/contracts/rpc-bridge";
import type { Clock } from "@devmesh/service-kit/clock";
import type { Publisher } from "@devmesh/service-kit/events/publisher";
import type { Implementation } from "@devmesh/service-kit/rpc/implementation";
import { recordSpan, type SpanDescription, type Tracer } from "@devmesh/service-kit/tracing/tracer";
import type { EndSessions, WipeDevice } from "./broker-housekeeping/wipe-device.ts";
import { type CallMethod, createCallDelivery, type OnlineDevices } from "./calls/call-delivery.ts";
import type { CallLine, DeviceLink, DeviceLinkOptions } from "./calls/device-link.ts";
import { encodeRequest, parseReply } from "./calls/frame.ts";
import type { CallOutcome, InFlightCalls } from "./calls/in-flight-calls.ts";
import type { DevicesClient } from "./devices-client.ts";
import type { BridgeMetrics } from "./metrics.ts";

type Bridge = Implementation<typeof rpcBridge>;

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
            line = link.openCall(device_id, call.id);
            const undelivered = line.send(frame) ?? context.fail("broker_unreachable");
            const timestamp = clock.now().toISOString();
            const published = publisher.unacknowledged.rpc_in(
              { id: device_id, timestamp, func: method, ...given },
              { call: context },
            );
            if (published !== "ok") metrics.callEventsDropped.inc();
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
