import type { Json } from "@devmesh/contracts/model/json";
import { ApiProblem } from "../../../api/api-problem.ts";

/** The outcome of a call of a device's function. */
export type DeviceAnswer =
  | { readonly kind: "answered"; readonly result: Json }
  /** `detail` is null if `title` is enough. */
  | { readonly kind: "failed"; readonly title: string; readonly detail: string | null };

/** Messages for the reasons in the RPC table (api.md, RPC). */
const inWords: Readonly<Record<string, string>> = {
  device_not_found: "The device does not exist",
  device_offline: "The device is offline",
  rpc_timeout: "The device did not answer in time",
  function_not_found: "The device has no such function",
  device_error: "The device answered with an error",
  bad_device_reply: "The device sent an invalid answer",
  bridge_restarting: "The server restarted during the call: try it again",
};

/** The outcome of a failed call. */
export function failedCall(error: unknown): DeviceAnswer {
  const detail = error instanceof Error ? error.message : String(error);
  if (!(error instanceof ApiProblem)) return { kind: "failed", title: "The call failed", detail };
  const words = inWords[error.reason];
  if (words === undefined) return { kind: "failed", title: "The call failed", detail };
  if (error.reason !== "device_error") return { kind: "failed", title: words, detail: null };
  return { kind: "failed", title: `${words} (code ${error.code})`, detail };
}
