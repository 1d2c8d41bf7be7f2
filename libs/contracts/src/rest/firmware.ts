import { z } from "zod";
import { jobs } from "../jobs.ts";
import { checkFirmwareInput, Firmware, FirmwareInput } from "../model/firmware.ts";
import { defineRoutes, get, paging, post, remove } from "./route.ts";

const ofFirmware = {
  params: z.object({ id: z.string().min(1).max(128).describe("Id of the firmware.") }),
  absent: { id: "firmware_not_found" },
} as const;
const tagged = { tag: "Firmware", auth: ["master", "session"] } as const;

const Bytes = z.string().meta({ format: "binary", description: "The bytes of the file.", example: "..." });

/** Headers of a request for a part of a file. */
const rangeHeaders = z.object({
  Range: z.string().optional().meta({
    description:
      "One range, such as `bytes=0-1023`; several, or another unit, are answered with the whole file.",
  }),
  "If-Range": z.string().optional().meta({
    description: "An `ETag`: of a file that has another one the whole is answered.",
  }),
  "If-None-Match": z.string().optional().meta({
    description: "One `ETag` or several: a file that has one of them is not sent again (304).",
  }),
});

const wholeHeaders = {
  ETag: "The SHA-256 of the file.",
  "Accept-Ranges": "`bytes`.",
  "x-SHA256": "The SHA-256 of the whole file, in hex.",
  "x-MD5":
    "The MD5 of the whole file, in hex, by which Arduino's updaters check it; absent where nobody knows it.",
} as const;

/** A file or a part of it. */
const ofRanges = {
  headers: rangeHeaders,
  ranges: true,
  answers: {
    200: {
      description: "The file.",
      other: { "application/octet-stream": Bytes },
      headers: wholeHeaders,
    },
    206: {
      description: "A part of the file.",
      other: { "application/octet-stream": Bytes },
      headers: { ...wholeHeaders, "Content-Range": "Which part of how many bytes." },
    },
    304: { description: "The file has an `ETag` of `If-None-Match`.", headers: wholeHeaders },
  },
} as const;

/** Files that devices can run (api.md, Firmware). */
export const firmware = defineRoutes({
  createFirmware: {
    ...post("/firmware", "firmware"),
    ...tagged,
    summary: "Declare a file that devices can run",
    body: { schema: FirmwareInput, optional: false, membersOnce: true, checkBesides: checkFirmwareInput },
    answers: {
      201: {
        description: "The firmware, without content.",
        json: Firmware,
        headers: { Location: "Where the firmware is read." },
      },
    },
    calls: [{ contract: jobs, methods: ["createFirmware"] }],
  },
  listFirmware: {
    ...get("/firmware"),
    ...tagged,
    summary: "List firmware, newest first",
    query: z.object(paging.query),
    answers: { 200: { description: "The firmware.", json: z.array(Firmware), headers: paging.headers } },
    calls: [{ contract: jobs, methods: ["listFirmware"] }],
  },
  readFirmware: {
    ...get("/firmware/:id"),
    ...tagged,
    summary: "Read firmware",
    ...ofFirmware,
    answers: { 200: { description: "The firmware.", json: Firmware } },
    calls: [{ contract: jobs, methods: ["readFirmware"] }],
  },
  deleteFirmware: {
    ...remove("/firmware/:id", "firmware"),
    ...tagged,
    summary: "Delete firmware and its content",
    ...ofFirmware,
    answers: { 204: { description: "Done." } },
    calls: [{ contract: jobs, methods: ["deleteFirmware"] }],
  },
  uploadFirmware: {
    ...post("/firmware/:id/content", "firmware"),
    ...tagged,
    summary: "Upload the content of firmware",
    description:
      "The bytes of the file. It becomes the content when all of it has arrived and has the declared size and SHA-256; nothing is left of an upload that is cut. A gateway takes four at a time, for 15 minutes each.",
    ...ofFirmware,
    upload: { type: "application/octet-stream", schema: Bytes },
    answers: { 200: { description: "The firmware, ready.", json: Firmware } },
    calls: [{ contract: jobs, methods: ["readFirmware", "putContent", "endContent"] }],
  },
  readFirmwareContent: {
    ...get("/firmware/:id/content"),
    ...tagged,
    summary: "Download the content of firmware",
    ...ofFirmware,
    ...ofRanges,
    calls: [{ contract: jobs, methods: ["readFirmware", "readContent"] }],
  },
  downloadFirmware: {
    ...get("/ota/:ticket"),
    tag: "Firmware",
    auth: null,
    secretPath: true,
    summary: "Download firmware, as a device",
    description:
      "The URL that a device is given for one attempt of an update; its ticket is a secret. It works until the update ends, for two downloads at a time.",
    params: z.object({ ticket: z.string().min(1).max(128).describe("The ticket in the URL.") }),
    // Firmware adds parameters, such as `?v=1` against caches.
    query: z.looseObject({}),
    absent: { ticket: "ticket_unknown" },
    ...ofRanges,
    calls: [{ contract: jobs, methods: ["openTicket", "noteDownload", "readContent"] }],
  },
});
