import type { rpcBridge, rpcEvents } from "@devmesh/contracts/rpc-bridge";
import type { Clock } from "@devmesh/service-kit/clock";
import type { Context } from "@devmesh/service-kit/context";
import type { Publisher } from "@devmesh/service-kit/events";
import type { Implementation } from "@devmesh/service-kit/implementation";
import type { Ingestion } from "./broker-housekeeping/device-streams.ts";
import type { EndSessions, WipeDevice } from "./broker-housekeeping/wipe-device.ts";
import type { CallOutcome, Calls } from "./calls/calls.ts";
import type { DeviceLink, DeviceLinkOptions } from "./calls/device-link.ts";
import { encodeRequest, parseReply } from "./calls/frame.ts";
import { deviceTopics, replySource } from "./device-topics.ts";
import type { DevicesClient } from "./devices-client.ts";
import type { BridgeMetrics } from "./metrics.ts";

type Bridge = Implementation<typeof rpcBridge>;
type CallMethod = Context<typeof rpcBridge, "call">;

/** What {@link createRpcBridge} needs. */
export interface RpcBridgeOptions {
  readonly calls: Calls;
  readonly devices: Pick<DevicesClient, "readPresence">;
  readonly link: DeviceLink;
  readonly publisher: Publisher<typeof rpcEvents>;
  readonly ingestion: Ingestion;
  readonly endSessions: EndSessions;
  readonly wipe: WipeDevice;
  readonly metrics: BridgeMetrics;
  readonly clock: Clock;
  /** Messages of devices that the broker keeps for the bridge; rejects while it cannot be asked. */
  readonly backlog: () => Promise<number>;
  /** One level of the topic that this replica's answers come on. */
  readonly replica: string;
  readonly maxFrameBytes: number;
}

/** `rpc.in` events on their way to their stream at one time; beyond it, calls go untold rather than wait. */
const maxCallEvents = 1_000;

/** What an answer that says "not yet" is left to reach its caller, in milliseconds. */
const answerMs = 200;

/**
 * Device calls, the clean-up of a deleted device's traces in the broker, and whether the broker keeps what devices
 * say.
 */
export function createRpcBridge(options: RpcBridgeOptions): Bridge {
  const { calls, devices, link, ingestion, endSessions, wipe, metrics, clock, replica, maxFrameBytes } =
    options;
  let callEvents = 0;

  async function isOnline(deviceId: string, context: CallMethod): Promise<boolean> {
    return (await devices.readPresence({ id: deviceId }, context)).online;
  }

  function tellCall(event: Parameters<Publisher<typeof rpcEvents>["rpc_in"]>[0], context: CallMethod): void {
    if (callEvents >= maxCallEvents) {
      metrics.callEventsDropped.inc();
      return;
    }
    callEvents++;
    void options.publisher.bestEffort.rpc_in(event, { call: context }).finally(() => callEvents--);
  }

  return {
    async call({ device_id, method, params, timeout_ms }, context) {
      const call = calls.open(device_id, timeout_ms) ?? context.fail("too_many_calls");
      context.signal.addEventListener("abort", call.abandon, { once: true });
      let replies: Disposable | undefined;
      try {
        const given = params === undefined ? {} : { params };
        const request = { id: call.id, src: replySource(device_id, replica), method, ...given };
        const frame = encodeRequest(request, maxFrameBytes) ?? context.fail("frame_too_large");
        // The call's own time runs already: it also bounds the wait for a registry that hangs.
        const online = await Promise.race([isOnline(device_id, context), call.outcome]);
        if (online === false) return context.fail("device_offline");
        if (online === true) {
          replies = link.awaitReplies(device_id);
          if (!link.send(deviceTopics.calls(device_id), frame)) return context.fail("broker_unreachable");
          tellCall({ id: device_id, timestamp: clock.now().toISOString(), func: method, ...given }, context);
        }
        return { result: resultOf(await call.outcome, context) };
      } finally {
        call.abandon();
        replies?.[Symbol.dispose]();
      }
    },
    async endSessions({ device_id, client_ids }, context) {
      await endSessions(device_id, client_ids, context.signal);
      return {};
    },
    async wipeDevice({ device_id, client_ids }, context) {
      await wipe(device_id, client_ids, context.signal);
      return {};
    },
    async awaitIngestion(_input, context) {
      // A little before the caller's time is over, so that it hears why.
      const waitMs = Math.max(0, context.deadline.remainingMs() - answerMs);
      return (await ingestion.untilReady(waitMs)) ? {} : context.fail("ingestion_not_ready");
    },
    async readBacklog(_input, context) {
      return { waiting: await options.backlog().catch(() => context.fail("backlog_unknown")) };
    },
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
 * Hands replies to the calls that wait for them. A reply counts only if it comes on a topic of the device that was
 * asked (api.md, MQTT): the broker lets a device publish below its own id alone.
 */
export function replyHandler(calls: Calls, metrics: BridgeMetrics): DeviceLinkOptions["onReply"] {
  return (deviceId, payload) => {
    // The calls have ended and the subscription has not yet.
    if (!calls.isWaitingFor(deviceId)) return metrics.repliesIgnored.inc({ why: "unexpected" });
    const reply = parseReply(payload);
    if (reply === null) return metrics.repliesIgnored.inc({ why: "unreadable" });
    if (!calls.settle(deviceId, reply.id, reply.reply)) metrics.repliesIgnored.inc({ why: "unexpected" });
  };
}
