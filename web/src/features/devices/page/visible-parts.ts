import type { Acl } from "@devmesh/contracts/model/acl";
import type { Device } from "@devmesh/contracts/model/device";
import { isJsonObject, JsonObject } from "@devmesh/contracts/model/json";
import { cutToPointers, pointerTree } from "@devmesh/contracts/model/pointer-tree";

/**
 * What `GET /m/device` answers the holder of the device's public key under an ACL (api.md, Device public key and the
 * ACL).
 */
export function visibleDevice(device: Device, { read }: Pick<Acl, "read">): JsonObject {
  const cut = cutToPointers(JsonObject.parse(device.shadow), pointerTree(read));
  const shadow = isJsonObject(cut) ? cut : {};
  return { id: device.id, shadow: { ...shadow, state: shadow.state ?? {} } };
}
