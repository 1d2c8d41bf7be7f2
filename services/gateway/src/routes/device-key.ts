import type { devices } from "@devmesh/contracts/devices";
import type { deviceKey } from "@devmesh/contracts/rest/device-key";
import type { Client } from "@devmesh/service-kit/implementation";
import type { Handlers } from "../http/handlers.ts";
import { bareDevice, condition } from "./tagged-device.ts";

/** The device of a device key (api.md, Device key). What the key may see and change is decided by `devices`. */
export function deviceKeyHandlers(clients: {
  readonly devices: Client<typeof devices, "readDevice" | "patchDevice">;
}): Handlers<keyof typeof deviceKey> {
  return {
    readAppDevice: async ({ principal, call }) =>
      bareDevice(await clients.devices.bytes.readDevice({ id: principal.device_id, principal }, call)),

    patchAppDevice: async ({ principal, body, header, call }) =>
      bareDevice(
        await clients.devices.bytes.patchDevice(
          { id: principal.device_id, principal, patch: body, ...condition(header("if-match")) },
          call,
        ),
      ),
  };
}
