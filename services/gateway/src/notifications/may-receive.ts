import type { Acl } from "@devmesh/contracts/model/acl";
import { Execution } from "@devmesh/contracts/model/execution";
import { isJsonObject } from "@devmesh/contracts/model/json";
import type { Notification } from "@devmesh/contracts/model/notification";
import { cutToPointers, pointerTree } from "@devmesh/contracts/model/pointer-tree";
import { topicMatcher } from "@devmesh/contracts/model/topic-match";
import { deviceTopics } from "@devmesh/contracts/mqtt";

/**
 * Whether a device's public key may receive a frame about the device (api.md, Notification stream); there is no ACL
 * where there is no device. Other names are refused, also `updated`: `devices.readDevice` cuts its device to the ACL.
 */
export function mayReceive(
  acl: Acl | undefined,
  { id, name, data }: Pick<Notification, "id" | "name" | "data">,
): boolean {
  if (name === "deleted") return true;
  if (acl === undefined) return false;
  const { read, rpc, queries } = acl;
  if (name === "online" || name === "offline") {
    const presence = { state: { reported: { online: true } } };
    return cutToPointers(presence, pointerTree(read)) !== undefined;
  }
  if (name.startsWith("rpc.in.")) return rpc.includes(name.slice("rpc.in.".length));
  if (name === "execution") {
    const execution = Execution.safeParse(data);
    return execution.success && execution.data.created_by.kind === "public_key";
  }
  if (id === null || name !== "data" || !isJsonObject(data) || typeof data.topic !== "string") return false;
  const { topic } = data;
  return Object.values(queries).some((query) => topicMatcher(deviceTopics.record(id, query.topic))(topic));
}
