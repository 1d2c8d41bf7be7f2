import { z } from "zod";
import { DeviceId } from "./device-id.ts";
import { Timestamp } from "./time.ts";

/** Why the login of a device was refused. */
export const loginRefusals = [
  "wrong_password",
  "wrong_client_id",
  "unknown_device",
  "bad_user_name",
  "throttled",
  "too_many_client_ids",
  "ingestion_not_ready",
  "store_unavailable",
  "timed_out",
] as const;

/** Diagnostics that are also frames of the notification stream, in bounded numbers. */
export const diagnosisFrames = [
  "login_refused",
  "session_taken_over",
  "subscription_limit",
  "allowance_exceeded",
  "publication_refused",
  "subscription_refused",
] as const;

/** What diagnostics record of a device. */
const diagnosisNames = [...diagnosisFrames, "connected", "disconnected"] as const;

/** Why something went wrong, by name, as the releases of all services say it (api.md, Diagnostics). */
const reasonsOfProblem = {
  login_refused: loginRefusals,
  session_taken_over: ["duplicate_client_id"],
  subscription_limit: ["acknowledged_subscriptions"],
  allowance_exceeded: ["messages", "bytes", "storage", "too_many"],
  publication_refused: [
    "topic",
    "no_name",
    "topic_too_long",
    "not_json",
    "too_large",
    "refused_by_store",
    "shadow_invalid",
    "shadow_not_writable",
    "version_conflict",
  ],
  subscription_refused: ["topic"],
} as const satisfies Readonly<Record<(typeof diagnosisFrames)[number], readonly string[]>>;

/** What diagnostics can be searched for: a name or a reason of an entry about something that went wrong. */
export const problemWords = [
  ...new Set([...diagnosisFrames, ...diagnosisFrames.flatMap((name) => reasonsOfProblem[name])]),
];

/** Most characters of an id that a client tried, of a client id, a topic and a detail; the rest is cut. */
export const diagnosisLengths = { id: 64, client_id: 128, topic: 256, detail: 256 } as const;

const context = {
  address: z.string().nullable().meta({
    description:
      "Address that the client connects from, as the broker sees it; null where it is not known. Where a proxy forwards MQTT, it is the address of the proxy.",
    example: "10.0.0.7",
  }),
  client_id: z.string().max(diagnosisLengths.client_id).nullable().meta({
    description: "MQTT client id; null where it is not known. Secrets in it are redacted.",
    example: "pump-1",
  }),
};

const repetition = {
  count: z.int().min(1).meta({
    description: "Number of equal ones that this entry combines, at least 1.",
  }),
  first_at: Timestamp.describe("When the first of them happened."),
  last_at: Timestamp.describe("When the last of them happened."),
};

const loginExample = {
  reason: "wrong_password",
  address: "10.0.0.7",
  client_id: "pump-1",
  count: 3,
  first_at: "2026-01-31T12:00:00.000Z",
  last_at: "2026-01-31T12:00:20.000Z",
} as const;

/** One entry of a device's diagnostics. Each `name` has its own reasons (api.md, Diagnostics). */
export const Diagnosis = z
  .object({
    name: z.enum(diagnosisNames).meta({ description: "What happened.", example: "login_refused" }),
    reason: z.string().nullable().meta({
      description: "Why, as a stable word; null where there is no more to say.",
      example: "wrong_password",
    }),
    ...context,
    topic: z.string().max(diagnosisLengths.topic).nullable().meta({
      description:
        "Topic of a refused publication or subscription, cut to 256 characters; null otherwise, and for further topics of a device that uses many.",
      example: null,
    }),
    detail: z.string().max(diagnosisLengths.detail).nullable().default(null).meta({
      description:
        "What exactly is wrong, or what is allowed instead, of the last of them, in words that may change; null where there is no more to say.",
      example: null,
    }),
    ...repetition,
  })
  .meta({
    id: "Diagnosis",
    description: "Something that happened to a device on its way to the mesh.",
    example: { name: "login_refused", ...loginExample, topic: null, detail: null },
  });
export type Diagnosis = z.infer<typeof Diagnosis>;

/** An entry in the list of those of all devices. */
export const DeviceDiagnosis = Diagnosis.extend({ id: DeviceId }).meta({
  id: "DeviceDiagnosis",
  description: "Something that happened to a device on its way to the mesh, with the device.",
  example: { id: "pump-1", name: "login_refused", ...loginExample, topic: null, detail: null },
});
export type DeviceDiagnosis = z.infer<typeof DeviceDiagnosis>;

/** What the list of diagnostics can be narrowed to: a name or a reason. */
export const DiagnosisWord = z.enum([...problemWords, "connected", "disconnected"]);
export type DiagnosisWord = z.infer<typeof DiagnosisWord>;

/** Refused logins under a user name that is no device. */
export const UnknownDevice = z
  .object({
    id: z.string().max(diagnosisLengths.id).meta({
      description:
        "User name that the client sent, cut to 64 characters; may be empty. Secrets in it are redacted.",
      example: "pmup-1",
    }),
    reason: z
      .enum(loginRefusals)
      .meta({ description: "Why the login was refused.", example: "unknown_device" }),
    ...context,
    ...repetition,
  })
  .meta({
    id: "UnknownDevice",
    description: "Refused logins under a user name that is no device.",
    example: { id: "pmup-1", ...loginExample, reason: "unknown_device" },
  });
export type UnknownDevice = z.infer<typeof UnknownDevice>;

/**
 * What a service reports of a device to the owner of the diagnostics. `id` is a user name where `registered` is false;
 * null: the service does not know whether there is such a device.
 */
export const DiagnosisReport = Diagnosis.omit({ first_at: true, last_at: true }).extend({
  id: z.string().max(diagnosisLengths.id),
  registered: z.boolean().nullable(),
  timestamp: Timestamp,
});
export type DiagnosisReport = z.infer<typeof DiagnosisReport>;

/** Payload of the live event by which services send their reports: one event for all of a quarter of a second. */
export const DiagnosisReports = z.object({ reports: z.array(DiagnosisReport) });
