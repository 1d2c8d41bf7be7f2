import { z } from "zod";
import { FunctionName } from "./acl.ts";
import { durationBetween } from "./duration.ts";
import { isJsonObject, JsonObject, JsonValue } from "./json.ts";
import { checkStructure } from "./shadow-structure.ts";
import type { ViolationList } from "./violation.ts";

/** Bounds of the `timeout` of a call, in milliseconds (api.md, RPC). */
export const rpcTimeout = { min: 100, max: 60_000, default: 10_000 } as const;

/** Bytes of an action's parameters or patch as compact JSON; the bridge bounds the whole frame of a call further. */
export const maxActionBytes = 16_384;

const isSmall = (value: unknown) => new TextEncoder().encode(JSON.stringify(value)).length <= maxActionBytes;
const tooLarge = `must be at most ${maxActionBytes} bytes of compact JSON`;

/** A call of a function. */
const RpcAction = z
  .strictObject({
    kind: z.literal("rpc").describe("A call of a function."),
    func: FunctionName,
    params: JsonValue.refine(isSmall, tooLarge).optional().describe("The parameters; absent for none."),
    timeout: z
      .int()
      .min(rpcTimeout.min)
      .max(rpcTimeout.max)
      .default(rpcTimeout.default)
      .describe("Milliseconds to wait for the device's answer."),
  })
  .meta({ id: "NewRpcAction", outputId: "RpcAction", description: "A call of a function." });

const ShadowActionPatch = z
  .strictObject({
    state: z
      .strictObject({ desired: JsonObject.describe("Merged into `desired` (RFC 7396).") })
      .meta({ id: "ShadowActionState", description: "Changes of the state." })
      .optional(),
    tags: JsonObject.optional().describe("Merged into `tags` (RFC 7396)."),
  })
  .refine(({ state, tags }) => state !== undefined || tags !== undefined, "must have `state` or `tags`")
  .refine(isSmall, tooLarge)
  .meta({ id: "ShadowActionPatch", description: "Changes of the shadow of each device." });

/** A change of the shadow. */
const ShadowAction = z
  .strictObject({
    kind: z.literal("shadow").describe("A change of the shadow."),
    patch: ShadowActionPatch,
    wait_for_report: z
      .boolean()
      .default(true)
      .describe("Succeeds once the device has reported what is desired; else once it is stored."),
    timeout: durationBetween("PT1S", "P90D")
      .default("P1D")
      .describe("How long the device may take to report it: an ISO 8601 duration of PT1S to P90D."),
  })
  .meta({ id: "NewShadowAction", outputId: "ShadowAction", description: "A change of the shadow." });

/** What devices are asked to do. */
export const Action = z.discriminatedUnion("kind", [RpcAction, ShadowAction]).meta({
  id: "NewAction",
  outputId: "Action",
  description: "What devices are asked to do.",
});
export type Action = z.infer<typeof Action>;

/** Checks of the patch in an action what its schema does not, as the owner of shadows does. */
export function checkActionPatch(action: unknown, pointer: string, violations: ViolationList): void {
  if (!isJsonObject(action) || !isJsonObject(action.patch)) return;
  const { state, tags } = action.patch;
  if (isJsonObject(tags)) checkStructure(tags, `${pointer}/patch/tags`, violations);
  if (isJsonObject(state) && isJsonObject(state.desired))
    checkStructure(state.desired, `${pointer}/patch/state/desired`, violations);
}
