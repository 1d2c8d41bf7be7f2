import { DeviceId } from "@devmesh/contracts/model/device-id";

/** Why a message below `db/` cannot be stored; the label of its count. */
export type UnusableTopic = "no_device" | "no_name";

/** The topic a device published on, and its id. */
export interface DataTopic {
  readonly deviceId: string;
  readonly topic: string;
}

/** Reads a topic from its levels. A name below the device is required: `db/ab` alone is nobody's. */
export function parseDataTopic(levels: readonly string[]): DataTopic | UnusableTopic {
  const [root, deviceId, name] = levels;
  if (root !== "db" || deviceId === undefined || !DeviceId.safeParse(deviceId).success) return "no_device";
  if (name === undefined) return "no_name";
  return { deviceId, topic: levels.join("/") };
}
