import type { Diagnosis } from "@devmesh/contracts/model/diagnostics";
import { countText } from "../../../components/number-text.ts";

const names: Readonly<Record<Diagnosis["name"], string>> = {
  login_refused: "login refused",
  session_taken_over: "session taken over",
  subscription_limit: "too many subscriptions",
  allowance_exceeded: "sent too much",
  publication_refused: "message dropped",
  subscription_refused: "subscription refused",
  connected: "connected",
  disconnected: "disconnected",
};

/** Reasons whose own words need an explanation; the others are shown with blanks. */
const reasons: Readonly<Record<string, string>> = {
  wrong_client_id: "wrong client id; it must be the device's id, or begin with it and a colon",
  throttled: "kept out for a while, or too many logins at once",
  ingestion_not_ready: "the mesh was starting; the device may try again",
  store_unavailable: "the store did not answer; the device may try again",
  timed_out: "the login could not be checked in time; the device may try again",
  duplicate_client_id: "another login used the same client id",
  client_closed: "the device closed the connection",
  read_error: "nothing came within the keep-alive, or the network broke",
  slow_consumer_pending_bytes: "the device does not read what it is sent",
  slow_consumer_write_deadline: "the device does not read what it is sent",
  authentication_expired: "a login lasts a day",
  kicked: "closed by the mesh",
  ended_by_mesh: "closed by the mesh",
  acknowledged_subscriptions: "16 at QoS 1 or 2; further ones are refused",
  messages: "too many messages a second; it is kept out for a while",
  bytes: "too many bytes a second; it is kept out for a while",
  storage: "too much waits in the broker; it is kept out for a while",
  too_many: "too many shadow updates or events a second; the rest is dropped",
  topic: "a device may not use this topic",
  not_json: "the event is no JSON",
  too_large: "more than 256 KB",
  refused_by_store: "the store cannot take it",
};

/** Problems whose words in short are not their own. */
const problems: Readonly<Record<string, string>> = {
  topic: "Wrong topic",
  messages: "Too many messages",
  bytes: "Too many bytes",
  storage: "Too much waits",
  too_many: "Too many updates or events",
  not_json: "Event without JSON",
  shadow_invalid: "Invalid shadow update",
  duplicate_client_id: "Client id used twice",
  acknowledged_subscriptions: "Too many subscriptions",
  ingestion_not_ready: "Login while the mesh started",
  store_unavailable: "Login without the store",
  timed_out: "Login not checked in time",
};

/** A problem of devices in short, by its name or reason: "Wrong password". */
export function problemText(problem: string): string {
  const words = problem.replaceAll("_", " ");
  return problems[problem] ?? words.slice(0, 1).toUpperCase() + words.slice(1);
}

/** What an entry of the diagnostics is called: "login refused". */
export function diagnosisName({ name }: Pick<Diagnosis, "name">): string {
  return names[name];
}

/** Why, where, from where and how often: "wrong password, from 10.0.0.7, 3 times". */
export function diagnosisDetail(diagnosis: Diagnosis): string {
  return diagnosisParts(diagnosis).join(", ");
}

/** The parts of {@link diagnosisDetail}. */
export function diagnosisParts({ name, reason, topic, address, client_id, count }: Diagnosis): string[] {
  const isOwnClientId = name === "login_refused" && reason !== "wrong_client_id";
  const parts = [
    reason === null ? null : (reasons[reason] ?? reason.replaceAll("_", " ")),
    topic === null ? null : `topic ${topic}`,
    address === null || address === "" ? null : `from ${address}`,
    isOwnClientId || client_id === null ? null : `client id ${client_id}`,
    count > 1 ? `${countText(count)} times` : null,
  ];
  return parts.filter((part) => part !== null);
}

/** Whether something went wrong; a device that comes and goes is no problem. */
export function isProblem({ name }: Pick<Diagnosis, "name">): boolean {
  return name !== "connected" && name !== "disconnected";
}
