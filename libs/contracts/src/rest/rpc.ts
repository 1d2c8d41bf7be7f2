import { z } from "zod";
import { waitingCalls } from "../jobs.ts";
import { callParamsRule, isCallParams, rpcTimeout } from "../model/action.ts";
import { durationBetween } from "../model/duration.ts";
import { Execution } from "../model/execution.ts";
import { type Json, JsonValue } from "../model/json.ts";
import { queryInteger } from "./route.ts";

const timeout = queryInteger({ ...rpcTimeout, description: "Milliseconds to wait for the device." });

/** Query parameters of a device call. */
export const RpcQuery = z.object({ timeout });

/** Of a call that may wait in a store until its device listens, for `longest` at most. */
export const waitingRpcQuery = (longest: string) =>
  z
    .object({
      timeout,
      wait: durationBetween("PT1S", longest)
        .optional()
        .meta({
          description: `Answers at once and calls the device when it listens, within this time: an ISO 8601 duration of PT1S to ${longest}.`,
        }),
      attempts: queryInteger({
        min: 1,
        max: waitingCalls.attempts,
        default: 1,
        description: "With `wait`: how often the call may be sent until the device answers. 1: at most once.",
      }),
    })
    .refine(({ wait, attempts }) => wait !== undefined || attempts === undefined, {
      path: ["attempts"],
      message: "needs `wait`",
    });

/** The parameters of a device call: an object or an array, passed on as they are. */
export const RpcParams = z.custom<Json>(isCallParams, callParamsRule).meta({
  id: "RpcParams",
  description: "The parameters of the function, an object or an array, passed on as they are.",
  example: { pin: 2, on: true },
});

const RpcResult = JsonValue.meta({
  id: "RpcResult",
  description: "The bare result of the function: any JSON; null where the device answered none.",
  example: { on: true },
});

/** What a device call answers. */
export const RpcAnswer = { description: "The bare result of the function.", json: RpcResult } as const;

/** What a call with `wait` answers. */
export const WaitingAnswer = {
  description: "With `wait`: the call is stored.",
  json: Execution,
  headers: { Location: "Where the execution is read." },
} as const;
