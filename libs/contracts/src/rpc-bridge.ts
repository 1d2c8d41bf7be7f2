import { z } from "zod";
import { readBacklog } from "./backlog.ts";
import {
  defineContract,
  defineEvent,
  defineEvents,
  defineLiveEvent,
  device_not_found,
  done,
  idempotent,
  notIdempotent,
} from "./contract.ts";
import { FunctionName } from "./model/acl.ts";
import { rpcTimeout } from "./model/action.ts";
import { DeviceId } from "./model/device-id.ts";
import { DiagnosisReports } from "./model/diagnostics.ts";
import { JsonValue } from "./model/json.ts";
import { Timestamp } from "./model/time.ts";

/** The device's own error. */
const DeviceError = z.object({ code: z.int(), message: z.string() });

/** What a frame asks of a device. */
const call = {
  device_id: DeviceId,
  method: FunctionName,
  /** Passed on as they are; absent means none. */
  params: JsonValue.optional(),
  timeout_ms: z.int().min(rpcTimeout.min).max(rpcTimeout.max),
};

const sent = z.literal(true);
const unsent = z.literal(false);

/** What became of one attempt. Where `sent` is false, no client of the device has received anything (ADR 32). */
export const CallAttempt = z.discriminatedUnion("outcome", [
  /** `result` is null where the device answered none. */
  z.object({ outcome: z.literal("result"), sent, result: JsonValue }),
  z.object({ outcome: z.literal("error"), sent, error: DeviceError }),
  z.object({ outcome: z.literal("no_such_function"), sent }),
  z.object({ outcome: z.literal("unreadable"), sent }),
  /** No answer in time. */
  z.object({ outcome: z.literal("timeout"), sent }),
  /** The device disconnected, or was deleted, before it answered. */
  z.object({ outcome: z.literal("gone"), sent }),
  /** The bridge was stopped before the device answered. */
  z.object({ outcome: z.literal("restarting"), sent }),
  /** No client of the device subscribes to its calls. */
  z.object({ outcome: z.literal("nobody_listens"), sent: unsent }),
  /** As many calls wait for devices as the bridge holds, or it stops. */
  z.object({ outcome: z.literal("busy"), sent: unsent }),
  /** The frame would exceed its size. */
  z.object({ outcome: z.literal("too_large"), sent: unsent }),
  /** The bridge has no connection to the broker now. */
  z.object({ outcome: z.literal("no_broker"), sent: unsent }),
]);
export type CallAttempt = z.infer<typeof CallAttempt>;

/** Device calls and everything else that touches device topics. */
export const rpcBridge = defineContract({
  service: "rpc-bridge",
  version: 1,
  methods: {
    call: {
      ...notIdempotent,
      deadlineMs: rpcTimeout.max + 5_000,
      in: z.object(call),
      /** The device's `result`; null where it answered none. */
      out: z.object({ result: JsonValue }),
      errors: {
        device_not_found,
        device_offline: { code: "conflict", when: "The device has no MQTT connection." },
        rpc_timeout: {
          code: "deadline_exceeded",
          when: "The device is connected but did not answer in time.",
        },
        function_not_found: { code: "not_found", when: "The device has no such function." },
        device_error: { code: "internal", when: "The device answered with an error.", details: DeviceError },
        bad_device_reply: {
          code: "internal",
          when: "The device answered with something unreadable, or with a number that no double holds.",
        },
        frame_too_large: { code: "invalid_argument", when: "The frame to the device would exceed its size." },
        too_many_calls: {
          code: "resource_exhausted",
          when: "As many calls wait for devices as the bridge holds; retry later.",
        },
        broker_unreachable: {
          code: "unavailable",
          when: "The bridge has lost its MQTT connection to the broker; retry.",
        },
        bridge_restarting: { code: "unavailable", when: "The bridge that held the call was stopped; retry." },
      },
    },
    /** Sends one frame at most once, whether or not the device is known to be online; waits for nothing before. */
    attemptCall: {
      ...notIdempotent,
      deadlineMs: rpcTimeout.max + 5_000,
      in: z.object({
        ...call,
        /** No event is published: pieces of firmware would drive all others out of the stream. */
        quiet: z.boolean().optional(),
      }),
      out: CallAttempt,
    },
    /** Closes the connections of a device under these client ids and drops their sessions; no will is published. */
    endSessions: {
      ...idempotent,
      in: z.object({ device_id: DeviceId, client_ids: z.array(z.string()) }),
      out: done,
    },
    /** Drops sessions, queued and retained messages of a device whose access has ended. */
    wipeDevice: {
      ...idempotent,
      deadlineMs: 25_000,
      in: z.object({ device_id: DeviceId, client_ids: z.array(z.string()) }),
      out: done,
    },
    /** How many shadow requests and events of devices the broker keeps that are not handled yet. */
    readBacklog,
  },
});

const about = { id: DeviceId, timestamp: Timestamp };

/** What went to devices, and what came from them, for listeners; best effort (ADR 20). */
export const rpcEvents = defineEvents({
  service: "rpc-bridge",
  events: {
    /** The device was called. */
    rpc_in: {
      ...defineEvent(
        z.object({ ...about, func: FunctionName, params: JsonValue.optional() }),
        (event) => event.id,
      ),
      unacknowledged: true,
    },
    /** The device published an event; `name` is what follows `ID/event/`. */
    rpc_out: defineEvent(z.object({ ...about, name: z.string(), payload: JsonValue }), (event) => event.id),
    /** Of what the broker keeps until services have handled it, which is too much, most is of this device. */
    hoarding: defineLiveEvent(z.object(about), (event) => event.id),
    /** Dropped messages, and sessions at their limit of subscriptions. */
    diagnostics: defineLiveEvent(DiagnosisReports, () => "all"),
  },
});
