import { JsonObject } from "@devmesh/contracts/model/json";
import type { Clock } from "@devmesh/service-kit/clock";
import { createCallContext } from "@devmesh/service-kit/context";
import { isReason } from "@devmesh/service-kit/errors";
import type { Logger } from "@devmesh/service-kit/logger";
import { z } from "zod";
import type { DeviceLink } from "../calls/device-link.ts";
import { deviceTopics } from "../device-topics.ts";
import type { DevicesClient } from "../devices-client.ts";
import type { DeviceMessage } from "../events/device-message.ts";
import { withRetries } from "../retry.ts";
import {
  isMergedIn,
  parseShadowUpdate,
  type Rejection,
  readClientToken,
  rejectionOf,
  type ShadowUpdate,
} from "./shadow-request.ts";

/** What devices ask about their own shadow (api.md, MQTT). */
export interface DeviceShadows {
  /**
   * Applies an update with the device as principal and answers on `accepted` or `rejected`. Throws only when it was
   * not decided before `signal` aborted; the update must then be delivered again. One that was applied by a process
   * that died before it could say so is applied twice: the same merge, one more step of the version. A device that is
   * no more gets no answer, as does one of the same id that came after it.
   */
  update(message: DeviceMessage, signal: AbortSignal): Promise<void>;
  /** Answers on `rejected` that the device sends too many updates; none is applied. Never throws. */
  refuse(message: DeviceMessage, signal: AbortSignal): Promise<void>;
  /** Answers with state, version and timestamp on `ID/shadow`; never tags. A device that is no more gets no answer. */
  read(message: DeviceMessage, signal: AbortSignal): Promise<void>;
}

/** What {@link createDeviceShadows} needs. */
export interface DeviceShadowsOptions {
  readonly devices: Pick<DevicesClient, "patchDevice" | "readDevice">;
  readonly link: Pick<DeviceLink, "send">;
  readonly clock: Clock;
  readonly log: Logger;
}

/** The shadow out of a device object as the registry shows it to the device. */
const DeviceView = z.object({
  shadow: z.object({ state: JsonObject, version: z.int(), timestamp: z.int() }),
});
type ShadowView = z.infer<typeof DeviceView>["shadow"];

/** How long one attempt at the registry may take, in milliseconds. */
const attemptMs = 5_000;

/** Answers devices over `link`, after asking `devices` as the device itself. Waits out a registry that is away. */
export function createDeviceShadows({ devices, link, clock, log }: DeviceShadowsOptions): DeviceShadows {
  async function apply(
    { deviceId, timestamp }: DeviceMessage,
    { patch }: ShadowUpdate,
    signal: AbortSignal,
  ): Promise<ShadowView> {
    using call = createCallContext({ timeoutMs: attemptMs, signal, clock });
    const principal = { kind: "device", device_id: deviceId } as const;
    const input = { id: deviceId, principal, patch: { shadow: patch }, taken_at: timestamp.toISOString() };
    const { device } = await devices.patchDevice(input, call);
    return DeviceView.parse(device).shadow;
  }

  async function readShadow(deviceId: string, signal: AbortSignal): Promise<ShadowView> {
    using call = createCallContext({ timeoutMs: attemptMs, signal, clock });
    const principal = { kind: "device", device_id: deviceId } as const;
    const { device } = await devices.readDevice({ id: deviceId, principal }, call);
    return DeviceView.parse(device).shadow;
  }

  /** The shadow, if an update that was tried before is known to be in it already. */
  async function appliedBefore(deviceId: string, { patch }: ShadowUpdate, signal: AbortSignal) {
    const shadow = await readShadow(deviceId, signal);
    const { desired = {}, reported = {} } = shadow.state;
    return isMergedIn({ desired, reported }, patch.state ?? {}) ? shadow : null;
  }

  async function decide(
    message: DeviceMessage,
    request: ShadowUpdate,
    signal: AbortSignal,
  ): Promise<ShadowView> {
    let mayBeApplied = message.redelivered;
    return await withRetries(
      async () => {
        try {
          return await apply(message, request, signal);
        } catch (error) {
          if (!mayBeApplied || !isReason(error, "version_conflict")) {
            // What is tried again after a failure may have been applied before its answer was lost.
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
   * At QoS 0: what was decided stands, whether the device hears of it or not, and a device that does not asks again.
   * At QoS 1 each answer would wait for the broker's storage, and the next message with it.
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

  function reject(deviceId: string, rejection: Rejection, signal: AbortSignal): Promise<void> {
    return answer(deviceTopics.updateRejected(deviceId), rejection, signal);
  }

  return {
    async update(message, signal) {
      const { deviceId, payload } = message;
      const request = parseShadowUpdate(payload);
      if ("code" in request) return reject(deviceId, request, signal);
      const token = request.clientToken === undefined ? {} : { clientToken: request.clientToken };
      try {
        const { version, timestamp } = await decide(message, request, signal);
        const accepted = { state: request.patch.state, version, timestamp, ...token };
        await answer(deviceTopics.updateAccepted(deviceId), accepted, signal);
      } catch (error) {
        if (signal.aborted) throw error;
        if (isReason(error, "device_not_found")) return;
        const rejection = rejectionOf(error);
        if (rejection.code >= 500) log.error({ err: error, device_id: deviceId }, "a shadow update failed");
        await reject(deviceId, { ...rejection, ...token }, signal);
      }
    },
    async refuse({ deviceId, payload }, signal) {
      const rejection = { code: 429, message: "too many updates a second", ...readClientToken(payload) };
      await reject(deviceId, rejection, signal);
    },
    async read({ deviceId, payload }, signal) {
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
