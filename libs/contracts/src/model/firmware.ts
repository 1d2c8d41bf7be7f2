import { z } from "zod";
import { WrittenCondition } from "./condition-text.ts";
import { DeviceCondition } from "./device-condition.ts";
import { Creator } from "./execution.ts";
import type { JsonObject } from "./json.ts";
import { Timestamp } from "./time.ts";
import type { ViolationList } from "./violation.ts";
import { wellFormedText } from "./well-formed-text.ts";

/** Bounds of firmware (api.md, Firmware). */
export const firmwareBounds = {
  /** Bytes of each piece of a file but the last. */
  pieceBytes: 256 * 1024,
  /** How long an upload may take, in milliseconds. */
  uploadMs: 15 * 60_000,
  /** Files, with or without content. */
  files: 10_000,
} as const;

const text = (max: number) => wellFormedText(max).min(1);

/** A text of one line, without blanks around it: a line break makes a version that no device reports. */
const Line = wellFormedText(64).trim().min(1);
const size = "Bytes of the file.";
const sha256 = "SHA-256 of the file, in lower-case hex.";
const version = "Any text; versions are equal or not, and have no order.";
const reportedAs = "The version that a device reports once it runs the file.";
const requires = "What a device must be like to be sent the file";
const md5 =
  "MD5 of the content, in lower-case hex, for devices that check a download by it; null where nobody knows it.";
const signature = "A signature over the 32 bytes of the SHA-256, in base64, for devices that check it";

const Sha256 = z.string().regex(/^[0-9a-f]{64}$/, "must be 64 hex digits in lower case");

/** The body of `POST /firmware`. */
export const FirmwareInput = z
  .strictObject({
    name: Line.describe("What people call it; unique together with `version`."),
    version: Line.describe(version),
    size: z.int().min(1).describe(size),
    sha256: Sha256.describe(sha256),
    reported_as: Line.optional().describe(`${reportedAs.slice(0, -1)}; \`version\` if left out.`),
    requires: WrittenCondition.optional().describe(`${requires}.`),
    signature: z
      .string()
      .max(1_024)
      .regex(/^[A-Za-z0-9+/]+={0,2}$/, "must be base64")
      .optional()
      .describe(`${signature}.`),
    note: text(1_000).optional().describe("A text for people."),
  })
  .meta({
    id: "FirmwareInput",
    description: "A file that devices can run; its content is sent to `POST /firmware/:id/content`.",
    example: {
      name: "pump",
      version: "1.4.0",
      size: 1_048_576,
      sha256: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
      requires: { labels: { all: ["pump-v2"] } },
    },
  });
export type FirmwareInput = z.infer<typeof FirmwareInput>;

/** Finds in a body what the service refuses beyond the schema; the body may break the schema. */
export function checkFirmwareInput(body: JsonObject, violations: ViolationList): void {
  for (const member of ["name", "version", "reported_as"]) {
    const line = body[member];
    if (typeof line === "string" && /\p{Cc}/u.test(line.trim()))
      violations.add(`/${member}`, "must have no control characters");
  }
}

/** A file under a name and a version. */
export const Firmware = z
  .object({
    id: z.string().describe("Its id."),
    name: z.string().describe("What people call it."),
    version: z.string().describe(version),
    size: z.int().describe(size),
    sha256: Sha256.describe(sha256),
    md5: z.string().nullable().default(null).describe(md5),
    reported_as: z.string().describe(reportedAs),
    requires: DeviceCondition.nullable().describe(`${requires}; null for nothing.`),
    signature: z.string().nullable().describe(`${signature}; null for none.`),
    note: z.string().nullable().describe("A text for people; null for none."),
    ready: z.boolean().describe("Whether its content was uploaded whole, and has this size and SHA-256."),
    created_at: Timestamp.describe("When it was created."),
    created_by: Creator,
  })
  .meta({
    id: "Firmware",
    description: "A file that devices can run, under a name and a version.",
    example: {
      id: "01937a3c-5b1e-7000-8f00-0123456789ab",
      name: "pump",
      version: "1.4.0",
      size: 1_048_576,
      sha256: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
      md5: "098f6bcd4621d373cade4e832627b4f6",
      reported_as: "1.4.0",
      requires: { labels: { all: ["pump-v2"] } },
      signature: null,
      note: null,
      ready: true,
      created_at: "2026-01-31T12:00:00.000Z",
      created_by: { kind: "master", key_id: "0198c2a0b7f0" },
    },
  });
export type Firmware = z.infer<typeof Firmware>;
