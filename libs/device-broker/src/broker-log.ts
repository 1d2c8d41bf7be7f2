import { redactSecrets } from "@devmesh/contracts/model/api-key";
import type { DiagnosisReport } from "@devmesh/contracts/model/diagnostics";
import { visibleText } from "@devmesh/contracts/model/visible-text";
import { deniedFilters, deviceOfClientId } from "@devmesh/contracts/mqtt";
import { systemClock } from "@devmesh/service-kit/clock";
import { createDiagnosisReporter } from "./diagnosis-reporter.ts";

/**
 * What nats-server logs of a device that uses a topic that it may not use. No event of the broker has it. Anchored at
 * the line's begin and strict in the client id, which a device chooses.
 */
const violation = new RegExp(
  [
    /^\[\d+\] \S+ \S+ \[ERR\] /,
    /\[?(?<address>[^\s\]]+)\]?:\d+ - mid(?:_ws)?:\d+ - /,
    /"(?<clientId>[\w-]+(?::[\w:-]+)?)" - /,
    /(?<verb>Publish|Subscription) Violation - Subject "(?<subject>(?:[^"\\]|\\.)*)"/,
  ]
    .map(({ source }) => source)
    .join(""),
);

/** Characters that are kept of a line of nats-server's log: it can have names of strangers, 64 KB each. */
const maxLine = 300;

/** A line as it is written and shown, after {@link redactedLine}: half a token would not be found. */
export function cutLine(line: string): string {
  return line.length > maxLine ? `${line.slice(0, maxLine).toWellFormed()}…` : line;
}

/** A line of nats-server's log without tokens, which a failed login has as user name or client id. */
export function redactedLine(line: string): string {
  return visibleText(redactSecrets(line));
}

/**
 * Reads lines of nats-server's log and publishes what they say of refused topics, at most four times a second. The
 * service `devices` takes it.
 */
export function createRefusedTopics(
  publish: (event: { readonly reports: DiagnosisReport[] }) => void,
): (line: string) => void {
  const report = createDiagnosisReporter({ clock: systemClock, publish });
  return (line) => {
    const { address = "", clientId, verb, subject = "" } = violation.exec(line)?.groups ?? {};
    if (clientId === undefined) return;
    const deviceId = deviceOfClientId(clientId);
    const topic = topicOf(subject);
    // Mongoose OS firmware makes it at each connect, and works without it (api.md, MQTT).
    if (verb === "Subscription" && deniedFilters(deviceId).includes(topic)) return;
    report({
      id: deviceId,
      name: verb === "Publish" ? "publication_refused" : "subscription_refused",
      reason: "topic",
      // The broker may have generated the client id: then it names no device.
      registered: null,
      address,
      client_id: clientId,
      topic,
    });
  };
}

/** The topic or filter of a subject: `a//b` is the level `a.b`. */
function topicOf(subject: string): string {
  const levels = subject.split(".").map((token) => {
    if (token === "*") return "+";
    return token === ">" ? "#" : token.replaceAll("//", ".");
  });
  return levels.join("/");
}
