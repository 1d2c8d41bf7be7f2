import { z } from "zod";
import { isJsonObject, type Json, JsonValue } from "../model/json.ts";
import { rpcTimeout } from "../rpc-bridge.ts";
import { queryInteger } from "./route.ts";

/** Query parameters of a device call. */
export const RpcQuery = z.object({
  timeout: queryInteger({ ...rpcTimeout, description: "Milliseconds to wait for the device." }),
});

/** The parameters of a device call: an object or an array, passed on as they are. */
export const RpcParams = z
  .custom<Json>((value) => isJsonObject(value) || Array.isArray(value), "must be a JSON object or array")
  .meta({
    id: "RpcParams",
    description: "The parameters of the function, passed on as they are.",
    oneOf: [
      { type: "object", additionalProperties: true },
      { type: "array", items: {} },
    ],
    example: { pin: 2, on: true },
  });

const RpcResult = JsonValue.meta({
  id: "RpcResult",
  description: "The bare result of the function: any JSON; null where the device answered none.",
  example: { on: true },
});

/** What a device call answers. */
export const RpcAnswer = { description: "The bare result of the function.", json: RpcResult } as const;
