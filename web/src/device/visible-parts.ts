import type { Acl } from "@devmesh/contracts/model/acl";
import type { Device } from "@devmesh/contracts/model/device";
import { isJsonObject, type Json, JsonObject } from "@devmesh/contracts/model/json";

/** What `GET /m/device` answers the holder of the device's public key under an ACL (api.md, Device public key and the ACL). */
export function visibleDevice(device: Device, { read }: Pick<Acl, "read">): JsonObject {
  const whole = JsonObject.parse(device.shadow);
  const cut = cutTo(whole, read.map(membersOf));
  const shadow = isJsonObject(cut) ? cut : {};
  return { id: device.id, shadow: { ...shadow, state: shadow.state ?? {} } };
}

/** What the paths cover, with the objects on the way there; undefined for nothing. Arrays are whole values. */
function cutTo(value: Json, paths: readonly (readonly string[])[]): Json | undefined {
  if (paths.some((path) => path.length === 0)) return value;
  if (!isJsonObject(value)) return undefined;
  const cut: JsonObject = {};
  for (const [name, below] of Object.entries(value)) {
    const inside = paths.filter((path) => path[0] === name).map((path) => path.slice(1));
    const part = inside.length === 0 ? undefined : cutTo(below, inside);
    if (part !== undefined) cut[name] = part;
  }
  return Object.keys(cut).length === 0 ? undefined : cut;
}

/** The members that a JSON pointer leads through (RFC 6901). */
function membersOf(pointer: string): string[] {
  return pointer
    .split("/")
    .slice(1)
    .map((token) => token.replaceAll("~1", "/").replaceAll("~0", "~"));
}
