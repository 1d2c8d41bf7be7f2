import { recordRoot } from "@devmesh/contracts/model/device-id";
import { allTopics, type TopicDeclaration } from "@devmesh/contracts/mqtt";

/** The NATS subject of a topic that the mesh builds: its levels contain no dot and are not empty. */
export function subjectOf(topic: string): string {
  return topic.replaceAll("/", ".");
}

/** The subject of a topic's template for one device, or for any. */
export function subjectFor(template: string, id = "*"): string {
  return subjectOf(
    template
      .replace("{id}", id)
      .replace(/\{[^}]+\.\.\.\}$/, ">")
      .replaceAll(/\{[^}]+\}/g, "*"),
  );
}

/** The subjects of what any device publishes for a service. */
export function takenSubjects(service: NonNullable<TopicDeclaration["takenBy"]>): string[] {
  // Wider than its topics: the canary of `data` is there, too.
  if (service === "data") return [`${recordRoot}.>`];
  return allTopics.filter(({ takenBy }) => takenBy === service).map(({ topic }) => subjectFor(topic));
}

/** The subjects of what any device publishes and no consumer holds: replies to calls. */
export const replySubjects = allTopics
  .filter(({ from, takenBy }) => from === "device" && takenBy === undefined)
  .map(({ topic }) => subjectFor(topic));

/** Where topics begin with fixed levels: by the first of them, what comes before the device's id. */
const prefixes = new Map(
  allTopics.flatMap(({ topic }) => {
    const before = topic.slice(0, topic.indexOf("{id}")).split("/").slice(0, -1);
    const [first] = before;
    return first === undefined ? [] : [[first, before] as const];
  }),
);

/** The device whose topic it is; takes the subject of a topic or of a filter below one device. */
export function deviceOfSubject(subject: string): string {
  const levels = subject.split(".");
  return levels[prefixes.get(levels[0] ?? "")?.length ?? 0] ?? "";
}

/** The subjects of all topics of one device. */
export function subjectsOfDevice(deviceId: string): string[] {
  return [[], ...prefixes.values()].map((before) => [...before, deviceId, ">"].join("."));
}

const retainedTopics = allTopics.filter(({ retained }) => retained).map(({ topic }) => topic);

/** Whether the mesh retains a message there. */
export function isRetainedByMesh(subject: string): boolean {
  const id = deviceOfSubject(subject);
  return retainedTopics.some((topic) => subjectFor(topic, id) === subject);
}

/**
 * The levels of the MQTT topic of a subject: `//` is a dot, and a single `/` marks an empty level. Null when a level
 * holds a NATS wildcard, which cannot be distinguished from the character.
 */
export function topicLevels(subject: string): readonly string[] | null {
  const levels: string[] = [];
  for (const token of subject.split(".")) {
    if (token === "*" || token === ">" || token === "") return null;
    levels.push(levelOf(token));
  }
  return levels;
}

/** `a//b` is the level `a.b`; a single `/` marks an empty level beside it. */
function levelOf(token: string): string {
  if (!token.includes("/")) return token;
  return token.replaceAll(/\/\/|\//g, (slashes) => (slashes === "//" ? "." : ""));
}
