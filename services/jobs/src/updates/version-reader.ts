import type { devices } from "@devmesh/contracts/devices";
import type { FirmwareAction } from "@devmesh/contracts/model/action";
import { versionText } from "@devmesh/contracts/model/fleet";
import { isJsonObject, type Json } from "@devmesh/contracts/model/json";
import { membersOf } from "@devmesh/contracts/model/json-pointer";
import { Shadow } from "@devmesh/contracts/model/shadow";
import type { Clock } from "@devmesh/service-kit/clock";
import { createCallContext } from "@devmesh/service-kit/rpc/context";
import type { Client } from "@devmesh/service-kit/rpc/implementation";
import { z } from "zod";
import type { VersionReading } from "../executions/update-states.ts";
import type { DeviceCalls } from "../sending/device-calls.ts";

/** How long `devices` may take, in milliseconds. */
const readMs = 5_000;

/** A device as far as an update reads it. */
const ReadDevice = z.object({
  online: z.boolean(),
  shadow: Shadow.pick({ state: true, metadata: true, version: true }),
});
export type ReadDevice = z.infer<typeof ReadDevice>;

/** What reading a version brought, besides the version. */
type UnreadVersion =
  /** The device does not listen, or has gone before it answered. */
  | { readonly kind: "away" }
  /** It was asked, and did not answer in time. */
  | { readonly kind: "silent" }
  /** It has no such function, or answers something else. */
  | { readonly kind: "unreadable" }
  /** A service is away: nothing is known. */
  | { readonly kind: "unknown" };

export type ReadVersion =
  /** A shadow is read in any case, `online` or not. */
  ({ readonly kind: "read"; readonly online: boolean } & VersionReading) | UnreadVersion;

/** Where a device reports its version unless the action says otherwise. */
export function confirmOf({ confirm, via }: FirmwareAction): NonNullable<FirmwareAction["confirm"]> {
  if (confirm !== undefined) return confirm;
  if (via === "shadow") return { shadow: "/state/reported/ota/fw_version" };
  return { rpc: "Sys.GetInfo", pointer: "/fw_version" };
}

export interface VersionReaderOptions {
  readonly devices: Pick<Client<typeof devices>, "readDevice" | "readPresence">;
  readonly call: DeviceCalls;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/** Reads which firmware devices run, by a call or in their shadow. */
export function createVersionReader({ devices, call, clock, signal }: VersionReaderOptions) {
  const now = () => clock.now().getTime();

  async function readDevice(id: string): Promise<ReadDevice> {
    using context = createCallContext({ timeoutMs: readMs, signal, clock });
    const { device } = await devices.readDevice({ id, principal: { kind: "master" } }, context);
    return ReadDevice.parse(device);
  }

  /** The version in a shadow. One that is absent is no version; neither a text nor a number is unreadable. */
  function versionIn({ shadow, online }: ReadDevice, pointer: string): ReadVersion {
    const value = valueAt({ ...shadow } as unknown as Json, pointer);
    const version = versionText(value);
    if (value !== undefined && version === null) return { kind: "unreadable" };
    return { kind: "read", version, at: now(), online };
  }

  return {
    readDevice,

    /** When the device connected last, in Unix milliseconds; null where it has no connection, or nobody knows. */
    async readConnectedAt(id: string): Promise<number | null> {
      using context = createCallContext({ timeoutMs: readMs, signal, clock });
      const read = await devices.readPresence({ id }, context).catch(() => null);
      return read?.connected_at == null ? null : Date.parse(read.connected_at);
    },

    async readVersion(deviceId: string, action: FirmwareAction): Promise<ReadVersion> {
      const confirm = confirmOf(action);
      if ("shadow" in confirm)
        return await readDevice(deviceId).then(
          (device) => versionIn(device, confirm.shadow),
          () => ({ kind: "unknown" }),
        );
      const answer = await call(deviceId, confirm.rpc);
      switch (answer.outcome) {
        case "result": {
          const version = versionText(valueAt(answer.result, confirm.pointer));
          if (version === null) return { kind: "unreadable" };
          return { kind: "read", version, at: now(), online: true };
        }
        case "error":
        case "no_such_function":
        case "unreadable":
        case "too_large":
          return { kind: "unreadable" };
        case "gone":
        case "nobody_listens":
          return { kind: "away" };
        case "timeout":
          return { kind: "silent" };
        case "restarting":
        case "busy":
        case "no_broker":
        case "unknown":
        case "undelivered":
          return { kind: "unknown" };
      }
    },
  };
}
export type VersionReader = ReturnType<typeof createVersionReader>;

/** The value at a JSON pointer; undefined where there is none. */
export function valueAt(document: Json, pointer: string): Json | undefined {
  let value: Json | undefined = document;
  for (const member of membersOf(pointer)) {
    if (Array.isArray(value)) value = value[Number(member)];
    else if (isJsonObject(value) && Object.hasOwn(value, member)) value = value[member];
    else return undefined;
  }
  return value;
}
