import { z } from "zod";
import {
  cursor_invalid,
  defineContract,
  defineEvent,
  defineEvents,
  defineLiveEvent,
  device_not_found,
  done,
  doneIfRepeated,
  idempotent,
  notIdempotent,
  ofPage,
  pageOf,
} from "./contract.ts";
import { FunctionName } from "./model/acl.ts";
import { maxActionBytes, rpcTimeout } from "./model/action.ts";
import { DeviceId } from "./model/device-id.ts";
import { Creator, Execution, ExecutionState } from "./model/execution.ts";
import { Firmware, FirmwareInput, firmwareBounds } from "./model/firmware.ts";
import { Job, JobInput, JobPatch, JobState, JobTarget, JobTrial } from "./model/job.ts";
import { JsonValue } from "./model/json.ts";
import { Timestamp } from "./model/time.ts";
import { Violation } from "./model/violation.ts";
import { Principal } from "./principal.ts";
import { rpcBridge } from "./rpc-bridge.ts";

/** Bounds of a waiting call (api.md, Work for devices). */
export const waitingCalls = {
  /** Of one device, and of those with its public key. */
  ofDevice: 100,
  ofPublicKey: 20,
  /** Bytes of its parameters as compact JSON; the bridge bounds the whole frame further. */
  paramsBytes: maxActionBytes,
  attempts: 100,
} as const;

const job_not_found = { code: "not_found", when: "There is no job of that id." } as const;
const job_invalid = {
  code: "invalid_argument",
  when: "A member of the body breaks a rule of jobs, or names another job that does not exist.",
  details: z.array(Violation),
} as const;
const execution_not_found = { code: "not_found", when: "There is no execution of that id." } as const;

const firmware_not_found = { code: "not_found", when: "There is no firmware of that id." } as const;
const firmware_store_full = {
  code: "conflict",
  when: "The store has as much firmware as it may: `FIRMWARE_MAX_BYTES` with uploads that were cut in the last hour, or 10,000 files.",
} as const;
const content_exists = {
  code: "conflict",
  when: "The firmware has its content, which never changes.",
} as const;
const content_mismatch = {
  code: "invalid_argument",
  when: "The content has another size or SHA-256 than was declared, or its upload took more than 15 minutes.",
} as const;
const ticket_unknown = {
  code: "not_found",
  when: "There is no such ticket, or a later attempt has another one.",
} as const;
const ticket_ended = {
  code: "not_found",
  when: "The update that the ticket was made for has ended.",
} as const;
/** One upload of a content, and one piece of it: all have the same size but the last. */
const ofUpload = { id: z.string(), upload: z.uuid() };
const Ticket = z.string().max(128);
const pieceNumber = z.int().min(0);
/** Bytes in base64, which is four characters for three of them. */
const PieceData = z.string().max(Math.ceil(firmwareBounds.pieceBytes / 3) * 4);

/** Work for devices that may be away, of one or of many: it waits in a store until a device listens. */
export const jobs = defineContract({
  service: "jobs",
  version: 1,
  methods: {
    /** Stores a call that waits for its device. The caller has checked what a public key may call. */
    createCall: {
      ...notIdempotent,
      in: z.object({
        device_id: DeviceId,
        func: FunctionName,
        params: JsonValue.optional(),
        /** Milliseconds until it expires. */
        wait_ms: z.int().min(1_000),
        attempts: z.int().min(1).max(waitingCalls.attempts),
        timeout_ms: z.int().min(rpcTimeout.min).max(rpcTimeout.max),
        created_by: Creator,
      }),
      out: Execution,
      errors: {
        device_not_found,
        frame_too_large: rpcBridge.methods.call.errors.frame_too_large,
        too_much_waiting: {
          code: "resource_exhausted",
          when: "As many calls wait for the device as may; some must end first.",
        },
      },
    },
    /** One execution, as far as the principal may read it. */
    readExecution: {
      ...idempotent,
      in: z.object({ id: z.string(), principal: Principal }),
      out: Execution,
      errors: { execution_not_found },
    },
    /** The executions of a device, newest first. */
    listExecutions: {
      ...idempotent,
      in: z.object({
        device_id: DeviceId,
        state: ExecutionState.optional(),
        ...ofPage,
      }),
      out: pageOf(Execution),
      errors: { device_not_found, cursor_invalid },
    },
    /** Ends what was not sent; with `force` also what was, which the device may still do. */
    cancelExecution: {
      ...notIdempotent,
      in: z.object({ id: z.string(), force: z.boolean() }),
      out: Execution,
      errors: {
        execution_not_found,
        execution_ended: { code: "conflict", when: "The execution has ended." },
        execution_sent: {
          code: "conflict",
          when: "The execution was sent and waits for the device's answer; `force` ends it all the same.",
        },
      },
    },
    /** Counts the devices that a job would have, and stores nothing. */
    tryTarget: {
      ...idempotent,
      deadlineMs: 30_000,
      in: z.object({
        target: JobTarget,
        /** Where it is a job of firmware: devices that do not meet its `requires` are counted, too. */
        firmware_id: z.string().optional(),
      }),
      out: JobTrial,
      errors: { job_invalid, firmware_not_found },
    },
    /** Stores a job, which is planned soon. */
    createJob: {
      ...notIdempotent,
      in: z.object({ job: JobInput, created_by: Creator }),
      out: Job,
      errors: {
        job_invalid,
        firmware_not_found,
        too_many_jobs: {
          code: "resource_exhausted",
          when: "As many jobs have not ended as may, or as many continuous ones; some must end first.",
        },
      },
    },
    /** Jobs, newest first. */
    listJobs: {
      ...idempotent,
      in: z.object({ state: JobState.optional(), ...ofPage }),
      out: pageOf(Job),
      errors: { cursor_invalid },
    },
    readJob: { ...idempotent, in: z.object({ id: z.string() }), out: Job, errors: { job_not_found } },
    /** Pauses, resumes, cancels or speeds a job. Holds for what is sent a second later. */
    changeJob: {
      ...notIdempotent,
      in: z.object({ id: z.string(), patch: JobPatch, by: Creator }),
      out: Job,
      errors: { job_not_found, job_ended: { code: "conflict", when: "The job has ended." } },
    },
    /** The executions of a job, in the order of its rollout. */
    listJobExecutions: {
      ...idempotent,
      in: z.object({ id: z.string(), state: ExecutionState.optional(), ...ofPage }),
      out: pageOf(Execution),
      errors: { job_not_found, cursor_invalid },
    },
    /** Ends all that waits for a deleted device, so that it reaches no later device of that id (ADR 14). */
    dropDevice: { ...idempotent, deadlineMs: 25_000, in: z.object({ device_id: DeviceId }), out: done },

    /** Declares a file that devices can run; its content follows. */
    createFirmware: {
      ...notIdempotent,
      in: z.object({ firmware: FirmwareInput, created_by: Creator }),
      out: Firmware,
      errors: {
        firmware_invalid: {
          code: "invalid_argument",
          when: "A member of the body breaks a rule of firmware.",
          details: z.array(Violation),
        },
        firmware_exists: { code: "conflict", when: "There is firmware of that name and version." },
        firmware_store_full,
        firmware_too_large: { code: "invalid_argument", when: "The file exceeds `FIRMWARE_MAX_FILE`." },
        signature_invalid: {
          code: "invalid_argument",
          when: "The signature is not that of `FIRMWARE_PUBLIC_KEY` over the SHA-256.",
        },
      },
    },
    /** Newest first. */
    listFirmware: {
      ...idempotent,
      in: z.object(ofPage),
      out: pageOf(Firmware),
      errors: { cursor_invalid },
    },
    readFirmware: {
      ...idempotent,
      in: z.object({ id: z.string() }),
      out: Firmware,
      errors: { firmware_not_found },
    },
    deleteFirmware: {
      ...idempotent,
      in: z.object({ id: z.string() }),
      out: done,
      errors: {
        firmware_not_found: doneIfRepeated(firmware_not_found),
        firmware_in_use: { code: "conflict", when: "A job that has not ended sends it to devices." },
      },
    },
    /** Stores one piece of an upload; the first one, number 0, begins it. The caller makes the id of the upload. */
    putContent: {
      ...idempotent,
      in: z.object({ ...ofUpload, number: pieceNumber, data: PieceData }),
      out: done,
      errors: { firmware_not_found, content_exists, content_mismatch, firmware_store_full },
    },
    /** Reads an upload back and, if it is what was declared, makes it the content; else removes it. */
    endContent: {
      ...idempotent,
      deadlineMs: 60_000,
      in: z.object(ofUpload),
      out: Firmware,
      errors: { firmware_not_found, content_exists, content_mismatch },
    },
    /** One piece of the content. */
    readContent: {
      ...idempotent,
      in: z.object({ id: z.string(), number: pieceNumber }),
      out: z.object({ data: PieceData }),
      errors: {
        firmware_not_found,
        content_not_found: { code: "not_found", when: "The firmware has no content yet." },
      },
    },
    /** What a ticket opens, until its execution ends. */
    openTicket: {
      ...idempotent,
      in: z.object({ ticket: Ticket }),
      out: z.object({
        execution_id: z.string(),
        firmware: Firmware.pick({ id: true, sha256: true, md5: true, size: true }),
      }),
      errors: { ticket_unknown, ticket_ended },
    },
    /** Notes how many bytes of the file, from its beginning, its device has been sent; best effort. */
    noteDownload: {
      ...idempotent,
      in: z.object({ ticket: Ticket, bytes: z.int().min(0) }),
      out: done,
      errors: { ticket_unknown, ticket_ended },
    },

    /** How many executions are queued or sent. */
    readBacklog: { ...idempotent, in: z.object({}), out: z.object({ waiting: z.int().min(0) }) },
  },
});

/** Best effort: a crash between store and publish can lose the event, never the state. */
export const jobEvents = defineEvents({
  service: "jobs",
  events: {
    /** An execution was created or has ended; at most 50 a second are published. `id`: the device. */
    execution_changed: {
      ...defineEvent(
        z.object({ id: DeviceId, timestamp: Timestamp, execution: Execution }),
        (event) => event.id,
      ),
      unacknowledged: true,
    },
    /** A job changed: at a change of its state, and once a second while its counts change. */
    job_changed: {
      ...defineEvent(z.object({ id: z.string(), timestamp: Timestamp, job: Job }), (event) => event.id),
      unacknowledged: true,
    },
    /** Something new may be sent to these devices now. */
    due: defineLiveEvent(z.object({ device_ids: z.array(DeviceId).max(1_000) }), () => "all"),
  },
});
