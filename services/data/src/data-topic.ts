import { DeviceId } from "@devmesh/contracts/model/device-id";

/** Why a message on a subject below `db.` cannot be stored; the label of its count. */
export type UnusableTopic = "wildcard" | "no_device" | "no_name";

/** The topic a device published on, and its id. */
export interface DataTopic {
  readonly deviceId: string;
  readonly topic: string;
}

/**
 * Reads the topic from the subject that the broker made of it, without the prefix of its stream. A name below the device is
 * required (`db/ab` alone is nobody's), and no token may be a wildcard: the broker passes `*` and `>` through.
 */
export function parseDataSubject(subject: string): DataTopic | UnusableTopic {
  if (subject.split(".").some((token) => token === "*" || token === ">")) return "wildcard";
  const topic = topicOfSubject(subject);
  const [root, deviceId, name] = topic.split("/", 3);
  if (root !== "db" || !DeviceId.safeParse(deviceId).success || deviceId === undefined) return "no_device";
  if (name === undefined) return "no_name";
  return { deviceId, topic };
}

/**
 * The MQTT topic of which nats-server made a subject: `/` between levels became `.`, a `.` became `//`, and a `/` that begins
 * or ends the topic or stands beside another one kept itself as `/` (`natsSubjectToMQTTTopic` in its mqtt.go).
 */
export function topicOfSubject(subject: string): string {
  let topic = "";
  for (let at = 0; at < subject.length; at++) {
    const character = subject[at];
    if (character === ".") {
      topic += "/";
    } else if (character === "/") {
      const following = subject[at + 1];
      if (following === ".") topic += "/";
      else if (following === "/") topic += ".";
      else continue;
      at++;
    } else {
      topic += character;
    }
  }
  return topic;
}
