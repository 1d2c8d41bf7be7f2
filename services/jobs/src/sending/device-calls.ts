import type { Json } from "@devmesh/contracts/model/json";
import type { CallAttempt, rpcBridge } from "@devmesh/contracts/rpc-bridge";
import type { Clock } from "@devmesh/service-kit/clock";
import { isUndelivered } from "@devmesh/service-kit/rpc/client";
import { createCallContext } from "@devmesh/service-kit/rpc/context";
import type { Client } from "@devmesh/service-kit/rpc/implementation";

/** How long a device may take to answer unless the caller says, and the bridge beyond that, in milliseconds. */
const answerMs = 10_000;
const travelMs = 5_000;

/** What became of a call: of the bridge, or that it was not reached, or did not answer. */
export type CallAnswer =
  | CallAttempt
  | { readonly outcome: "undelivered"; readonly sent: false }
  | { readonly outcome: "unknown"; readonly sent: true };

/** Calls a device once. */
export type DeviceCalls = (
  deviceId: string,
  method: string,
  params?: Json,
  timeoutMs?: number,
  fromWebhook?: boolean,
) => Promise<CallAnswer>;

export interface DeviceCallsOptions {
  readonly bridge: Pick<Client<typeof rpcBridge>, "attemptCall">;
  /** Whether no events of the calls are published. */
  readonly quiet: boolean;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

export function createDeviceCalls({ bridge, quiet, clock, signal }: DeviceCallsOptions): DeviceCalls {
  return async (device_id, method, params, timeout_ms = answerMs, fromWebhook = false) => {
    using context = createCallContext({ timeoutMs: timeout_ms + travelMs, signal, fromWebhook, clock });
    const given = params === undefined ? {} : { params };
    try {
      return await bridge.attemptCall(
        { device_id, method, ...given, timeout_ms, ...(quiet && { quiet }) },
        context,
      );
    } catch (error) {
      if (isUndelivered(error)) return { outcome: "undelivered", sent: false };
      return { outcome: "unknown", sent: true };
    }
  };
}

/** Whether a device did what it was asked; some firmware answers success as an error of code 0. */
export function isDone(answer: CallAnswer): boolean {
  return answer.outcome === "result" || (answer.outcome === "error" && answer.error.code === 0);
}
