import { z } from "zod";
import { Timestamp } from "./time.ts";

/** Longest life of a session, in days. */
export const maxSessionDays = 30;

/** Most sessions at a time; one more ends the one that was not used for longest. */
export const maxSessions = 100;

const members = {
  id: z.string().describe("Id of the session in URLs; no secret."),
  master_key_id: z.string().describe("The master key that began it; it ends with that key."),
  name: z.string().nullable().describe("Where it is, such as the browser."),
  created_at: Timestamp.describe("When it began."),
  last_used: Timestamp.nullable().describe("When it was last used, exact to a minute; null before."),
  expires_at: Timestamp.describe("When it ends."),
};

const example = {
  id: "0198c2a0b7f4",
  master_key_id: "0198c2a0b7f0",
  name: "Firefox on Linux",
  created_at: "2026-01-31T12:00:00.000Z",
  last_used: null,
  expires_at: "2026-03-02T12:00:00.000Z",
};

/** A session of the dashboard, without its key. */
export const Session = z
  .object(members)
  .meta({ id: "Session", description: "A session of the dashboard.", example });
export type Session = z.infer<typeof Session>;

/** A session that has just begun. Its key is in no other answer. */
export const CreatedSession = z
  .object({ ...members, key: z.string().describe("The secret; it cannot be read again.") })
  .meta({
    id: "CreatedSession",
    description: "A session that has just begun, with its key.",
    example: { ...example, key: "sk_4fT9wXq2LmZ8sVb1NcR6yKp3HdGj7uAe" },
  });

/** The body of `POST /sessions`. */
export const SessionInput = z
  .strictObject({
    name: z.string().max(256).nullable().optional().describe("Where it is, such as the browser."),
    days: z
      .int()
      .min(1)
      .max(maxSessionDays)
      .optional()
      .describe(
        `Number of days that it lasts, ${maxSessionDays} if left out; never longer than its master key.`,
      ),
  })
  .meta({
    id: "SessionInput",
    description: "A session to begin.",
    example: { name: "Firefox on Linux", days: 1 },
  });
