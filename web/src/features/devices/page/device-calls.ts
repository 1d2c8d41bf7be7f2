import type { Device } from "@devmesh/contracts/model/device";
import { JsonValue } from "@devmesh/contracts/model/json";
import { useMutation } from "@tanstack/react-query";
import { z } from "zod";
import type { ApiClient } from "../../../api/api-client.ts";
import { useApi } from "../../../api/api-context.tsx";
import { queryKeys } from "../../../api/query-keys.ts";
import { useReading } from "../../../api/use-reading.ts";
import { useStreamed } from "../../../live/use-streamed.ts";
import { paramsIn, type TypedCall } from "../shared/call-form.tsx";
import { type DeviceAnswer, failedCall } from "./call-outcome.ts";

/** A call in this session. */
export interface PastCall extends TypedCall {
  /** Unix ms. */
  readonly startedAt: number;
  /** Time from the click to the response, in milliseconds. */
  readonly tookMs: number;
  readonly outcome: DeviceAnswer;
}

/** Maximum of calls that are kept of a device. */
const maxPastCalls = 50;

const noCalls: readonly PastCall[] = [];

/**
 * The calls of a device in this session, newest first, its functions, and a way to call one. The functions are asked of
 * the device, so only for a view that `offers` them.
 */
export function useDeviceCalls({ id, online }: Pick<Device, "id" | "online">, offers: boolean) {
  const api = useApi();
  const [calls, updateCalls] = useStreamed(queryKeys.calls(id), noCalls, Number.POSITIVE_INFINITY);
  const functions = useReading({
    queryKey: [...queryKeys.device(id), "functions"],
    queryFn: ({ signal }) => listFunctions(api, id, signal),
    enabled: online && offers,
    retry: false,
    // It asks the device: a gap of the stream is no reason to.
    staleTime: "static",
  });
  const calling = useMutation({
    mutationFn: (call: TypedCall) => callDevice(api, id, call),
    onSuccess: (call) => updateCalls((before) => [call, ...before].slice(0, maxPastCalls)),
  });
  return { calls, functions, calling, clear: () => updateCalls(() => noCalls) };
}

async function listFunctions(api: ApiClient, id: string, signal: AbortSignal): Promise<string[]> {
  const answer = await api.call("callFunctionWithoutParams", {
    params: { id, func: "RPC.List" },
    query: { timeout: 5_000 },
    signal,
  });
  return z.array(z.string()).parse(answer).sort();
}

/** Calls a function; a failure is an outcome, too. */
async function callDevice(
  api: ApiClient,
  id: string,
  { func, params, timeout }: TypedCall,
): Promise<PastCall> {
  const startedAt = Date.now();
  const begun = performance.now();
  let outcome: DeviceAnswer;
  try {
    const body = paramsIn(params).value;
    const result = await api.call("callFunction", { params: { id, func }, query: { timeout }, body });
    // An execution answers a call with `wait` alone.
    outcome = { kind: "answered", result: JsonValue.parse(result) };
  } catch (error) {
    outcome = failedCall(error);
  }
  return { func, params, timeout, startedAt, tookMs: performance.now() - begun, outcome };
}
