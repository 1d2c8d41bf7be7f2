import { z } from "zod";
import { FunctionName, ShadowPointer } from "./acl.ts";
import { durationBetween } from "./duration.ts";
import { isJsonObject, JsonObject, JsonValue } from "./json.ts";
import { LabelChanges } from "./labels.ts";
import { checkStructure } from "./shadow-structure.ts";
import type { ViolationList } from "./violation.ts";

/** Bounds of the `timeout` of a call, in milliseconds (api.md, RPC). */
export const rpcTimeout = { min: 100, max: 60_000, default: 10_000 } as const;

/** Whether a value can be the parameters of a call: devices take an object or an array (api.md, RPC). */
export function isCallParams(value: unknown): boolean {
  return isJsonObject(value) || Array.isArray(value);
}
export const callParamsRule = "must be a JSON object or array";

/** Bytes of an action's parameters or patch as compact JSON; the bridge bounds the whole frame of a call further. */
export const maxActionBytes = 16_384;

const isSmall = (value: unknown) => new TextEncoder().encode(JSON.stringify(value)).length <= maxActionBytes;
const tooLarge = `must be at most ${maxActionBytes} bytes of compact JSON`;

/** A call of a function. */
const RpcAction = z
  .strictObject({
    kind: z.literal("rpc").describe("A call of a function."),
    func: FunctionName,
    params: JsonValue.refine(isSmall, tooLarge)
      .optional()
      .describe("The parameters, an object or an array; absent for none."),
    timeout: z
      .int()
      .min(rpcTimeout.min)
      .max(rpcTimeout.max)
      .default(rpcTimeout.default)
      .describe("Milliseconds to wait for the device's answer."),
  })
  .meta({ id: "RpcActionInput", outputId: "RpcAction", description: "A call of a function." });

const ShadowActionPatch = z
  .strictObject({
    state: z
      .strictObject({ desired: JsonObject.describe("Merged into `desired` (RFC 7396).") })
      .meta({ id: "ShadowActionState", description: "Changes of the state." })
      .optional(),
    tags: JsonObject.optional().describe("Merged into `tags` (RFC 7396)."),
    labels: LabelChanges.optional().describe("Applied to `tags.labels`; the labels of others stay."),
  })
  .refine(
    ({ state, tags, labels }) => state !== undefined || tags !== undefined || labels !== undefined,
    "must have `state`, `tags` or `labels`",
  )
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
  .meta({ id: "ShadowActionInput", outputId: "ShadowAction", description: "A change of the shadow." });

/** By what way a device gets firmware. */
export const firmwareWays = ["url", "shadow", "push"] as const;

const VersionOfCall = z
  .strictObject({
    rpc: FunctionName.describe("The function that answers it."),
    pointer: z
      .string()
      .max(512)
      .regex(/^(\/([^/~]|~[01])*)*$/, "must be a JSON pointer such as /fw_version")
      .describe("JSON pointer (RFC 6901) into its result; empty for the result itself."),
  })
  .meta({ id: "VersionOfCall", description: "The version is in the result of a call." });

const VersionInShadow = z
  .strictObject({
    shadow: ShadowPointer.refine(
      (pointer) => pointer.startsWith("/state/reported/"),
      "must begin with /state/reported/",
    ).describe("JSON pointer into the shadow."),
  })
  .meta({ id: "VersionInShadow", description: "The version is in the shadow." });

/** New firmware. */
const FirmwareAction = z
  .strictObject({
    kind: z.literal("firmware").describe("New firmware."),
    firmware_id: z.string().min(1).max(128).describe("The firmware, whose content must be complete."),
    via: z
      .enum(firmwareWays)
      .describe(
        "`url`: the device is called with `OTA.Update` and fetches the file over HTTP. `shadow`: it finds the URL in `desired.ota`. `push`: it is sent the file by `OTA.Begin`, `OTA.Write` and `OTA.End`.",
      ),
    confirm: z
      .union([VersionOfCall, VersionInShadow], {
        error: "must have `rpc` and `pointer`, or `shadow` with a pointer below /state/reported",
      })
      .meta({ id: "VersionPlace", description: "Where a device reports its version." })
      .optional()
      .describe(
        "Where the device reports its version: by default in the shadow at /state/reported/ota/fw_version for `shadow`, else in /fw_version of `Sys.GetInfo`.",
      ),
    commit: FunctionName.optional().describe(
      "Called when the new version is stable, without which some firmware goes back to the old one: `OTA.Commit` by default, none for `shadow`. A device that has no such function is fine.",
    ),
    stable: durationBetween("PT0S", "P7D")
      .default("PT1M")
      .describe("How long a version must last until it counts: an ISO 8601 duration of PT0S to P7D."),
    timeout: durationBetween("PT1S", "P90D")
      .default("PT1H")
      .describe(
        "How long an attempt may take until the device reports its new version: an ISO 8601 duration of PT1S to P90D.",
      ),
    chunk: z
      .int()
      .min(64)
      .max(16_384)
      .default(2_048)
      .describe(
        "With `push`: bytes of the file in each call; a frame to a device has 4 KB in all by default.",
      ),
  })
  .meta({ id: "FirmwareActionInput", outputId: "FirmwareAction", description: "New firmware." });
export type FirmwareAction = z.infer<typeof FirmwareAction>;

/** What devices are asked to do. */
export const Action = z.discriminatedUnion("kind", [RpcAction, ShadowAction, FirmwareAction]).meta({
  id: "ActionInput",
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
