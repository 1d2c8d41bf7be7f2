import { devices as devicesContract, maxGatheredDevices } from "@devmesh/contracts/devices";
import { JsonObject } from "@devmesh/contracts/model/json";
import { deviceTopics, type ShadowUpdateRejected } from "@devmesh/contracts/mqtt";
import type { DeviceLink } from "@devmesh/device-broker/device-link";
import type { ReportDiagnosis } from "@devmesh/device-broker/diagnosis-reporter";
import type { Clock } from "@devmesh/service-kit/clock";
import { isReason, restoreError, ServiceError } from "@devmesh/service-kit/errors";
import { gather } from "@devmesh/service-kit/gather";
import type { Logger } from "@devmesh/service-kit/logger";
import { createCallContext } from "@devmesh/service-kit/rpc/context";
import { z } from "zod";
import type { DevicesClient } from "../devices-client.ts";
import { withRetries } from "../retry.ts";
import {
  isMergedIn,
  parseShadowUpdate,
  readClientToken,
  rejectionOf,
  type ShadowUpdate,
} from "./shadow-request.ts";

/** A message of a device about its own shadow. */
export interface ShadowMessage {
  readonly deviceId: string;
  readonly payload: Uint8Array;
  /** When the broker took it; at QoS 0, when the bridge received it. */
  readonly timestamp: Date;
  /** It was delivered before and not acknowledged: the update may be applied already. Never at QoS 0. */
  readonly redelivered: boolean;
}

/** What devices ask about their own shadow (api.md, MQTT). */
export type DeviceShadows = ReturnType<typeof createDeviceShadows>;

export interface DeviceShadowsOptions {
  readonly devices: Pick<DevicesClient, "updateShadows" | "readDevice">;
  readonly link: Pick<DeviceLink, "send">;
  readonly report: ReportDiagnosis;
  readonly clock: Clock;
  readonly log: Logger;
  /** Ends all calls of `devices`. */
  readonly signal: AbortSignal;
}

/** What an update came to. */
type Applied = Pick<ShadowView, "version" | "timestamp">;

/** An update on its way to `devices`. */
interface GatheredUpdate {
  readonly bytes: number;
  readonly update: Parameters<DevicesClient["updateShadows"]>[0]["updates"][number];
}

/** The shadow in a device object, as its device may read it. */
const DeviceView = z.object({
  shadow: z.object({ state: JsonObject, version: z.int(), timestamp: z.int() }),
});
type ShadowView = z.infer<typeof DeviceView>["shadow"];

/** Reasons of the diagnostics for updates that the device should not have sent, by code of the rejection. */
const refusalOf: Readonly<Record<number, string>> = {
  400: "shadow_invalid",
  403: "shadow_not_writable",
  409: "version_conflict",
  413: "too_large",
};

/** How long one call of `devices` may take, in milliseconds. */
const callTimeoutMs = 5_000;

/** Calls at one time that carry updates, and the bytes of the updates in one. */
const maxCalls = 4;
const maxCallBytes = 512 * 1024;

/** Answers devices over `link`, after asking `devices` as the device itself; retries while that is away. */
export function createDeviceShadows(options: DeviceShadowsOptions) {
  const { devices, link, report, clock, log } = options;

  async function applyAll(gathered: readonly GatheredUpdate[]) {
    using call = createCallContext({ timeoutMs: callTimeoutMs, signal: options.signal, clock });
    return await devices.updateShadows({ updates: gathered.map(({ update }) => update) }, call);
  }
  const applyGathered = gather({
    ask: applyAll,
    maxItems: maxGatheredDevices,
    maxBytes: maxCallBytes,
    sizeOf: ({ bytes }: GatheredUpdate) => bytes,
    maxCalls,
  });

  async function apply(
    { deviceId, timestamp, payload }: ShadowMessage,
    { patch }: ShadowUpdate,
    isAlone: boolean,
  ): Promise<Applied> {
    const update = { id: deviceId, patch, taken_at: timestamp.toISOString() };
    const gathered = { update, bytes: payload.byteLength };
    const outcome = isAlone ? (await applyAll([gathered]))[0] : await applyGathered(gathered);
    if (outcome === undefined) throw ServiceError.of("internal");
    if (!("error" in outcome)) return outcome;
    const { service, methods } = devicesContract;
    throw restoreError(outcome.error, service, methods.updateShadows.errors);
  }

  async function readShadow(deviceId: string, signal: AbortSignal): Promise<ShadowView> {
    using call = createCallContext({ timeoutMs: callTimeoutMs, signal, clock });
    const principal = { kind: "device", device_id: deviceId } as const;
    const { device } = await devices.readDevice({ id: deviceId, principal }, call);
    return DeviceView.parse(device).shadow;
  }

  /** The shadow, if it contains the update already. */
  async function appliedBefore(deviceId: string, { patch }: ShadowUpdate, signal: AbortSignal) {
    const shadow = await readShadow(deviceId, signal);
    const { desired = {}, reported = {} } = shadow.state;
    return isMergedIn({ desired, reported }, patch.state ?? {}) ? shadow : null;
  }

  async function decide(
    message: ShadowMessage,
    request: ShadowUpdate,
    signal: AbortSignal,
  ): Promise<Applied> {
    let mayBeApplied = message.redelivered;
    let isAlone = false;
    return await withRetries(
      async () => {
        try {
          return await apply(message, request, isAlone);
        } catch (error) {
          // One that no call can carry fails no other a second time.
          isAlone ||= !isReason(error, "unavailable");
          if (!mayBeApplied || !isReason(error, "version_conflict")) {
            // A failed attempt may have been applied, and its answer lost.
            mayBeApplied = true;
            throw error;
          }
          const shadow = await appliedBefore(message.deviceId, request, signal);
          if (shadow === null) throw error;
          return shadow;
        }
      },
      clock,
      signal,
    );
  }

  /**
   * At QoS 0: a device without an answer asks again, while at QoS 1 each answer, and the next message, would wait for
   * the broker's storage.
   */
  async function answer(topic: string, body: object, signal: AbortSignal): Promise<void> {
    const payload = Buffer.from(JSON.stringify(body));
    const sendOnce = async () => {
      if (!link.send(topic, payload)) throw new Error("no connection to the broker");
    };
    try {
      await withRetries(sendOnce, clock, signal);
    } catch (error) {
      log.warn({ err: error, topic }, "an answer did not reach the broker");
    }
  }

  function reject(deviceId: string, rejection: ShadowUpdateRejected, signal: AbortSignal): Promise<void> {
    const topic = deviceTopics.shadowUpdate(deviceId);
    const reason = refusalOf[rejection.code];
    // Many devices do not subscribe to `rejected`: the broker has acknowledged the update all the same.
    if (reason !== undefined)
      report({ id: deviceId, name: "publication_refused", reason, topic, detail: rejection.message });
    return answer(deviceTopics.shadowUpdateRejected(deviceId), rejection, signal);
  }

  return {
    /**
     * Applies an update with the device as principal and answers on `accepted` or `rejected`. Throws only when `signal`
     * aborts first; the update must then be delivered again, and may be applied twice: the same merge, one version
     * more. A deleted device gets no answer.
     */
    async update(message: ShadowMessage, signal: AbortSignal): Promise<void> {
      const { deviceId, payload } = message;
      const request = parseShadowUpdate(payload);
      if ("code" in request) return reject(deviceId, request, signal);
      const token = request.clientToken === undefined ? {} : { clientToken: request.clientToken };
      try {
        const { version, timestamp } = await decide(message, request, signal);
        const accepted = { state: request.patch.state, version, timestamp, ...token };
        await answer(deviceTopics.shadowUpdateAccepted(deviceId), accepted, signal);
      } catch (error) {
        if (signal.aborted) throw error;
        if (isReason(error, "device_not_found")) return;
        const rejection = rejectionOf(error);
        if (rejection.code >= 500) log.error({ err: error, device_id: deviceId }, "a shadow update failed");
        await reject(deviceId, { ...rejection, ...token }, signal);
      }
    },
    /** Answers on `rejected` that the device exceeds its rate. Never throws. */
    async refuse({ deviceId, payload }: ShadowMessage, signal: AbortSignal): Promise<void> {
      const rejection = { code: 429, message: "too many updates a second", ...readClientToken(payload) };
      await reject(deviceId, rejection, signal);
    },
    /** Answers with state, version and timestamp on `ID/shadow`; never tags. A deleted device gets no answer. */
    async read({ deviceId, payload }: ShadowMessage, signal: AbortSignal): Promise<void> {
      const token = readClientToken(payload);
      try {
        const { state, version, timestamp } = await withRetries(
          () => readShadow(deviceId, signal),
          clock,
          signal,
        );
        await answer(deviceTopics.shadow(deviceId), { state, version, timestamp, ...token }, signal);
      } catch (error) {
        if (signal.aborted) throw error;
        if (isReason(error, "device_not_found")) return;
        log.error({ err: error, device_id: deviceId }, "a shadow could not be read for its device");
      }
    },
  };
}
