import { z } from "zod";
import { Timestamp } from "./time.ts";

/** Number of changes that are kept of each kind of key, so that those of strangers displace none of a master key. */
export const keptChanges = { master: 35, device_key: 5, public_key: 5, customer: 5 } as const;

/** Number of changes that are kept in all. */
export const maxChanges = 50;

/** Kinds of what a request changes. */
const changedKinds = [
  "device",
  "key",
  "customer",
  "mail",
  "view",
  "board",
  "firmware",
  "webhook",
  "rule",
  "channel",
  "silence",
] as const;
export type ChangedKind = (typeof changedKinds)[number];

/** Kinds of key that change something. */
const changingKinds = [
  "master",
  "device_key",
  "public_key",
  "customer",
] as const satisfies readonly (keyof typeof keptChanges)[];

const Author = z
  .object({
    kind: z.enum(changingKinds).describe("Kind of the key."),
    id: z
      .string()
      .describe(
        "Id of the key; of a session that of its master key, of a public key that of its device, of a customer's key that of the customer.",
      ),
    name: z.string().nullable().describe("Name of the key at that time; null where it has none."),
  })
  .meta({ id: "ChangeAuthor", description: "The key that a change was made with." });

const Target = z
  .object({
    kind: z.enum(changedKinds).describe("What it is."),
    id: z.string().describe("Its id."),
  })
  .meta({ id: "ChangeTarget", description: "What was changed." });

/** A change that a request made, or several equal ones. It names things by id and holds nothing of the request. */
export const MeshChange = z
  .object({
    at: Timestamp.describe("When it was made, or the last of several."),
    by: Author.describe("Who made it."),
    operation: z.string().describe("The `operationId` of the request, such as `deleteDevice`."),
    target: Target.nullable().describe("What was changed, or the last of several; null if not known."),
    count: z
      .int()
      .min(1)
      .describe(
        "Number of changes that this entry combines: of one key by one operation, less than a minute apart.",
      ),
  })
  .meta({
    id: "MeshChange",
    description: "A change that a request made, or several equal ones.",
    example: {
      at: "2026-01-31T12:00:00.000Z",
      by: { kind: "master", id: "0198c2a0b7f0", name: "Ann" },
      operation: "deleteDevice",
      target: { kind: "device", id: "pump-3" },
      count: 12,
    },
  });
export type MeshChange = z.infer<typeof MeshChange>;

/** The last changes, newest first. */
export const MeshChanges = z.array(MeshChange).max(maxChanges);
export type MeshChanges = z.infer<typeof MeshChanges>;
