import { z } from "zod";
import { devices } from "../devices.ts";
import { jobs } from "../jobs.ts";
import { keys } from "../keys.ts";
import { DeadMail, mailer } from "../mailer.ts";
import { FunctionName } from "../model/acl.ts";
import { ApiKey, ApiKeyInput } from "../model/api-key.ts";
import { Board, BoardInput, BoardPatch, boardBounds, ListedBoard } from "../model/board.ts";
import { ConditionInput } from "../model/condition-text.ts";
import { ListedCustomer } from "../model/customer.ts";
import {
  CreatedDevice,
  Device,
  DeviceCredentials,
  DeviceInput,
  DeviceListItem,
  DeviceListOrder,
  DevicePatch,
  RotatedPublicKey,
  RotatedToken,
} from "../model/device.ts";
import type { DeviceCondition } from "../model/device-condition.ts";
import { DeviceFacets, type FacetName, facetNames } from "../model/device-facets.ts";
import { DeviceId } from "../model/device-id.ts";
import { DeviceDiagnosis, Diagnosis, DiagnosisWord, UnknownDevice } from "../model/diagnostics.ts";
import { Since } from "../model/duration.ts";
import { Execution, ExecutionPatch, ExecutionState } from "../model/execution.ts";
import { FleetSummary } from "../model/fleet.ts";
import { checkNewJob, Job, JobInput, JobOrTrial, JobPatch, JobState, JobTrial } from "../model/job.ts";
import { MeshChanges } from "../model/mesh-change.ts";
import { MeshHistory } from "../model/mesh-history.ts";
import { MeshState } from "../model/mesh-state.ts";
import { MqttAddress } from "../model/mqtt-address.ts";
import { maxViews, SavedView, ViewInput, ViewPatch } from "../model/saved-view.ts";
import { CreatedSession, maxSessions, Session, SessionInput } from "../model/session.ts";
import { checkShadowOf } from "../model/shadow-structure.ts";
import { rpcBridge } from "../rpc-bridge.ts";
import { countedPaging, defineRoutes, get, paging, post, QueryBoolean, remove } from "./route.ts";
import { RpcAnswer, RpcParams, RpcQuery, WaitingAnswer, waitingRpcQuery } from "./rpc.ts";

const tagged = (tag: string) => ({ tag, auth: ["master", "session"] }) as const;
/** A route with a secret in its answer, which no session gets. */
const secret = (tag: string) => ({ tag, auth: ["master"] }) as const;
const ofDevice = { params: z.object({ id: DeviceId }), absent: { id: "device_not_found" } } as const;
const ofFunction = {
  params: z.object({ id: DeviceId, func: FunctionName }),
  absent: { id: "device_not_found" },
} as const;
const identified = (what: string) =>
  z.object({ id: z.string().min(1).max(128).describe(`Id of the ${what}.`) });
const ofExecution = { params: identified("execution"), absent: { id: "execution_not_found" } } as const;
const ofView = { params: identified("view"), absent: { id: "view_not_found" } } as const;
const ofBoard = { params: identified("board"), absent: { id: "board_not_found" } } as const;
const ofJob = { params: identified("job"), absent: { id: "job_not_found" } } as const;
const nothing = { description: "Done." } as const;
const where = ConditionInput.optional().meta({
  type: "string",
  description:
    "A condition that devices must meet, as one line of text or as JSON of a DeviceCondition (api.md, Conditions).",
  example: "label:site-1 -version:1.4.2 silent:24h",
});
/** Conditions on values of shadows read the documents of devices. */
const readsShadows = ({ where }: Readonly<Record<string, unknown>>) =>
  ((where as DeviceCondition | undefined)?.shadow ?? []).length > 0;
const facetList = new RegExp(`^(${facetNames.join("|")})(,(${facetNames.join("|")}))*$`);
const etag = {
  ETag: "Changes with the device; `If-Match` compares it without presence, and 304 answers an `If-None-Match` with it.",
} as const;

/** What the vendor does with a master key: devices, RPC, keys, customers, and what runs the mesh (api.md). */
export const masterKey = defineRoutes({
  listDevices: {
    ...get("/devices"),
    ...tagged("Devices"),
    summary: "List devices",
    description: `All of them, streamed, unless \`limit\` is given; then \`Link\` with rel=next leads on. \`where\`, \`online\` and
\`filter\` must all be met. A device whose \`version\` or \`last_seen\` changes while a list in that order is read page by
page may be on two pages or none.`,
    query: z.object({
      ...paging.query,
      order: DeviceListOrder.optional().describe(
        "By time of creation, `asc` by default, `desc` the newest first; by version of the firmware, compared as text; or by `last_seen`. With `-` the reverse; devices without a value count as less.",
      ),
      online: QueryBoolean.optional().meta({
        description: "Only devices that are connected, or that are not.",
      }),
      filter: z.string().max(256).optional().meta({ description: "Substring of id, name or a label." }),
      where,
    }),
    cost: {
      tokens: 19,
      of: "A `where` on shadow values",
      applies: readsShadows,
    },
    answers: {
      200: {
        description: "The devices.",
        json: z.array(DeviceListItem),
        headers: countedPaging("such devices"),
      },
    },
    calls: [{ contract: devices, methods: ["listDevices", "countDevices", "facetDevices"] }],
  },
  facetDevices: {
    ...get("/device_facets"),
    ...tagged("Devices"),
    summary: "Count devices by version, label or problem",
    description:
      "Of the devices that meet a condition. Counts of connected and silent devices are at most 3 s old.",
    query: z.object({
      where,
      facets: z
        .string()
        .regex(facetList, `must be some of ${facetNames.join(", ")}, with commas between`)
        .transform((list) => list.split(",") as FacetName[])
        .optional()
        .meta({
          type: "string",
          description: `What they are counted by, with commas between: ${facetNames.join(", ")}.`,
          example: "version,label",
        }),
    }),
    cost: { tokens: 19, of: "Counts by a `where` on shadow values", applies: readsShadows },
    answers: { 200: { description: "The counts.", json: DeviceFacets } },
    calls: [{ contract: devices, methods: ["facetDevices"] }],
  },
  summarizeDevices: {
    ...get("/device_summary"),
    ...tagged("Devices"),
    summary: "Count all devices by what matters of a fleet",
    description:
      "By version, label, presence and silence, in an answer that takes as long for a million devices as for ten: it " +
      "is at most 20 s old, or 100 times as old as counting takes, and `counted_at` says how old it is.",
    answers: { 200: { description: "The counts.", json: FleetSummary } },
    calls: [{ contract: devices, methods: ["summarizeFleet"] }],
  },
  createDevice: {
    ...post("/devices", "device"),
    ...secret("Devices"),
    summary: "Create a device",
    body: { schema: DeviceInput, optional: true, checkBesides: checkShadowOf },
    answers: {
      201: {
        description: "The device and, only here, its secrets.",
        json: CreatedDevice,
        headers: { Location: "Where the device is read." },
      },
    },
    calls: [{ contract: devices, methods: ["createDevice"] }],
  },
  readDevice: {
    ...get("/devices/:id"),
    ...tagged("Devices"),
    summary: "Read a device",
    ...ofDevice,
    answers: { 200: { description: "The device.", json: Device, headers: etag } },
    calls: [{ contract: devices, methods: ["readDevice"] }],
  },
  patchDevice: {
    ...post("/devices/:id", "device"),
    ...tagged("Devices"),
    summary: "Change name, ACL or shadow",
    description:
      "The shadow is merged (RFC 7396). `shadow.version` and `If-Match` make the write conditional.",
    ...ofDevice,
    headers: z.object({
      "If-Match": z.string().optional().meta({
        description: "The `ETag` that the device was read with: refused with 412 if it has changed since.",
      }),
    }),
    body: { schema: DevicePatch, optional: false, checkBesides: checkShadowOf },
    answers: { 200: { description: "The device as it is now.", json: Device, headers: etag } },
    calls: [{ contract: devices, methods: ["patchDevice"] }],
  },
  deleteDevice: {
    ...remove("/devices/:id", "device"),
    ...tagged("Devices"),
    summary: "Delete a device and all that is its own",
    ...ofDevice,
    answers: { 204: nothing },
    calls: [{ contract: devices, methods: ["deleteDevice"] }],
  },
  readDiagnostics: {
    ...get("/devices/:id/diagnostics"),
    ...tagged("Devices"),
    summary: "See why a device does not connect",
    description: `Refused logins, connections and their ends, refused publications and exceeded limits of the device, newest first: the
last 50. They are in memory only and begin when the service \`devices\` starts.`,
    ...ofDevice,
    answers: { 200: { description: "What happened.", json: z.array(Diagnosis) } },
    calls: [{ contract: devices, methods: ["readDiagnostics"] }],
  },
  listDiagnostics: {
    ...get("/diagnostics"),
    ...tagged("Devices"),
    summary: "List what went wrong with devices, newest first",
    description: `The entries of the diagnostics of all devices, at most 1,000 unless \`limit\` is given; then \`Link\` with rel=next leads on.
An entry that happens again meanwhile is at the beginning again.`,
    query: z.object({
      ...paging.query,
      name: DiagnosisWord.optional().describe(
        "Only entries of this name or reason; without it, all that are a problem.",
      ),
      where,
      since: Since.optional().meta({
        description: "Inclusive; a time, or an ISO 8601 duration back from now.",
      }),
    }),
    cost: { tokens: 19, of: "Diagnostics with a `where` on shadow values", applies: readsShadows },
    answers: {
      200: { description: "The entries.", json: z.array(DeviceDiagnosis), headers: paging.headers },
    },
    calls: [{ contract: devices, methods: ["listDiagnostics"] }],
  },
  listUnknownDevices: {
    ...get("/unknown_devices"),
    ...tagged("Devices"),
    summary: "List logins of ids that are no device",
    description:
      "The last 50 refused logins under user names that are no device, newest first; equal ones are one.",
    answers: { 200: { description: "What was tried.", json: z.array(UnknownDevice) } },
    calls: [{ contract: devices, methods: ["listUnknownDevices"] }],
  },
  listViews: {
    ...get("/views"),
    ...tagged("Devices"),
    summary: "List the saved views of the list of devices, oldest first",
    answers: { 200: { description: "The views.", json: z.array(SavedView) } },
    calls: [{ contract: devices, methods: ["listViews"] }],
  },
  createView: {
    ...post("/views", "view"),
    ...tagged("Devices"),
    summary: "Save a view of the list of devices",
    description: `All master keys and their sessions share the views; there are at most ${maxViews}.`,
    body: { schema: ViewInput, optional: false },
    answers: { 201: { description: "The view.", json: SavedView } },
    calls: [{ contract: devices, methods: ["createView"] }],
  },
  patchView: {
    ...post("/views/:id", "view"),
    ...tagged("Devices"),
    summary: "Change the name or the query of a saved view",
    ...ofView,
    body: { schema: ViewPatch, optional: false },
    answers: { 200: { description: "The view as it is now.", json: SavedView } },
    calls: [{ contract: devices, methods: ["patchView"] }],
  },
  deleteView: {
    ...remove("/views/:id", "view"),
    ...tagged("Devices"),
    summary: "Delete a saved view",
    ...ofView,
    answers: { 204: nothing },
    calls: [{ contract: devices, methods: ["deleteView"] }],
  },
  listBoards: {
    ...get("/boards"),
    ...tagged("Boards"),
    summary: "List the boards, oldest first",
    answers: { 200: { description: "The boards, without their panels.", json: z.array(ListedBoard) } },
    calls: [{ contract: devices, methods: ["listBoards"] }],
  },
  createBoard: {
    ...post("/boards", "board"),
    ...tagged("Boards"),
    summary: "Create a board",
    description: `All master keys and their sessions share the boards; there are at most ${boardBounds.boards} of ${boardBounds.panels} panels.`,
    body: { schema: BoardInput, optional: false, membersOnce: true },
    answers: {
      201: { description: "The board.", json: Board, headers: { Location: "Where the board is read." } },
    },
    calls: [{ contract: devices, methods: ["createBoard"] }],
  },
  readBoard: {
    ...get("/boards/:id"),
    ...tagged("Boards"),
    summary: "Read a board",
    ...ofBoard,
    answers: { 200: { description: "The board.", json: Board } },
    calls: [{ contract: devices, methods: ["readBoard"] }],
  },
  patchBoard: {
    ...post("/boards/:id", "board"),
    ...tagged("Boards"),
    summary: "Change the name or the panels of a board",
    description: "With `revision` the change is refused if another one came first.",
    ...ofBoard,
    body: { schema: BoardPatch, optional: false, membersOnce: true },
    answers: { 200: { description: "The board as it is now.", json: Board } },
    calls: [{ contract: devices, methods: ["patchBoard"] }],
  },
  deleteBoard: {
    ...remove("/boards/:id", "board"),
    ...tagged("Boards"),
    summary: "Delete a board",
    ...ofBoard,
    answers: { 204: nothing },
    calls: [{ contract: devices, methods: ["deleteBoard"] }],
  },
  readCredentials: {
    ...get("/devices/:id/credentials"),
    ...secret("Devices"),
    summary: "Read a device's MQTT password and public key",
    ...ofDevice,
    answers: { 200: { description: "The secrets.", json: DeviceCredentials } },
    calls: [{ contract: devices, methods: ["readCredentials"] }],
  },
  rotateToken: {
    ...post("/devices/:id/token", "device"),
    ...secret("Devices"),
    summary: "Give a device a new MQTT password",
    description: "The old one is dead within a second and its sessions are closed.",
    ...ofDevice,
    answers: { 200: { description: "The new one.", json: RotatedToken } },
    calls: [{ contract: devices, methods: ["rotateToken"] }],
  },
  rotatePublicKey: {
    ...post("/devices/:id/public_key", "device"),
    ...secret("Devices"),
    summary: "Give a device a new public key",
    ...ofDevice,
    answers: { 200: { description: "The new one.", json: RotatedPublicKey } },
    calls: [{ contract: devices, methods: ["rotatePublicKey"] }],
  },
  callFunction: {
    ...post("/devices/:id/rpc/:func", null),
    ...tagged("RPC"),
    summary: "Call a function of a device with parameters",
    ...ofFunction,
    query: waitingRpcQuery("P90D"),
    body: { schema: RpcParams, optional: true },
    answers: { 200: RpcAnswer, 202: WaitingAnswer },
    calls: [
      { contract: rpcBridge, methods: ["call"] },
      { contract: jobs, methods: ["createCall"] },
    ],
  },
  callFunctionWithoutParams: {
    ...get("/devices/:id/rpc/:func"),
    ...tagged("RPC"),
    summary: "Call a function of a device without parameters",
    ...ofFunction,
    query: RpcQuery,
    answers: { 200: RpcAnswer },
    calls: [{ contract: rpcBridge, methods: ["call"] }],
  },
  listExecutions: {
    ...get("/devices/:id/executions"),
    ...tagged("Work"),
    summary: "List the executions of a device, newest first",
    ...ofDevice,
    query: z.object({
      ...paging.query,
      state: ExecutionState.optional().describe("Only those in this state."),
    }),
    answers: { 200: { description: "The executions.", json: z.array(Execution), headers: paging.headers } },
    calls: [{ contract: jobs, methods: ["listExecutions"] }],
  },
  readExecution: {
    ...get("/executions/:id"),
    ...tagged("Work"),
    summary: "Read an execution",
    ...ofExecution,
    answers: { 200: { description: "The execution.", json: Execution } },
    calls: [{ contract: jobs, methods: ["readExecution"] }],
  },
  cancelExecution: {
    ...post("/executions/:id", null),
    ...tagged("Work"),
    summary: "Cancel an execution",
    description:
      "What was sent waits for the device's answer and is not cancelled, unless `force` ends it here: the device may still do it.",
    ...ofExecution,
    body: { schema: ExecutionPatch, optional: false },
    answers: { 200: { description: "The execution.", json: Execution } },
    calls: [{ contract: jobs, methods: ["cancelExecution"] }],
  },
  createJob: {
    ...post("/jobs", null),
    ...tagged("Work"),
    summary: "Create a job: one action for many devices",
    description:
      "It is planned and begins by itself. With `dry_run=true` nothing is stored, and its devices are counted.",
    query: z.object({
      dry_run: QueryBoolean.optional().meta({ description: "Only counts the devices that it would have." }),
    }),
    body: { schema: JobInput, optional: false, membersOnce: true, checkBesides: checkNewJob },
    answers: {
      200: { description: "With `dry_run`: what it would do.", json: JobTrial, describedAs: JobOrTrial },
      201: {
        description: "The job.",
        json: Job,
        describedAs: JobOrTrial,
        headers: { Location: "Where the job is read." },
      },
    },
    calls: [{ contract: jobs, methods: ["tryTarget", "createJob"] }],
  },
  listJobs: {
    ...get("/jobs"),
    ...tagged("Work"),
    summary: "List jobs, newest first",
    query: z.object({ ...paging.query, state: JobState.optional().describe("Only those in this state.") }),
    answers: { 200: { description: "The jobs.", json: z.array(Job), headers: paging.headers } },
    calls: [{ contract: jobs, methods: ["listJobs"] }],
  },
  readJob: {
    ...get("/jobs/:id"),
    ...tagged("Work"),
    summary: "Read a job",
    ...ofJob,
    answers: { 200: { description: "The job.", json: Job } },
    calls: [{ contract: jobs, methods: ["readJob"] }],
  },
  changeJob: {
    ...post("/jobs/:id", null),
    ...tagged("Work"),
    summary: "Pause, resume, cancel or speed a job",
    description:
      "Holds a second later for what was not sent; what was sent ends by itself, unless `force` ends it here: devices may still do it.",
    ...ofJob,
    body: { schema: JobPatch, optional: false },
    answers: { 200: { description: "The job.", json: Job } },
    calls: [{ contract: jobs, methods: ["changeJob"] }],
  },
  listJobExecutions: {
    ...get("/jobs/:id/executions"),
    ...tagged("Work"),
    summary: "List the executions of a job, in the order of its rollout",
    ...ofJob,
    query: z.object({
      ...paging.query,
      state: ExecutionState.optional().describe("Only those in this state."),
    }),
    answers: { 200: { description: "The executions.", json: z.array(Execution), headers: paging.headers } },
    calls: [{ contract: jobs, methods: ["listJobExecutions"] }],
  },
  listKeys: {
    ...get("/keys"),
    ...tagged("Keys"),
    summary: "List master and device keys, oldest first",
    description: "For a session without the secrets: `key` is null.",
    query: z.object(paging.query),
    answers: { 200: { description: "The keys.", json: z.array(ApiKey), headers: countedPaging("keys") } },
    calls: [{ contract: keys, methods: ["listKeys", "listKeysWithoutSecrets", "countKeys"] }],
  },
  createKey: {
    ...post("/keys", "key"),
    ...secret("Keys"),
    summary: "Create a key",
    description: "No body makes a master key; `device_id` makes a device key.",
    body: { schema: ApiKeyInput, optional: true },
    answers: { 201: { description: "The key.", json: ApiKey } },
    calls: [{ contract: keys, methods: ["createKey"] }],
  },
  deleteKey: {
    ...remove("/keys/:id", "key"),
    ...tagged("Keys"),
    summary: "Delete a key",
    description:
      "It stops working everywhere within a second, and sessions that it began do. The last master key cannot be deleted.",
    params: identified("key"),
    absent: { id: "key_not_found" },
    answers: { 204: nothing },
    calls: [{ contract: keys, methods: ["deleteKey"] }],
  },
  listSessions: {
    ...get("/sessions"),
    ...tagged("Sessions"),
    summary: "List sessions of the dashboard, oldest first",
    answers: { 200: { description: "The sessions.", json: z.array(Session) } },
    calls: [{ contract: keys, methods: ["listSessions"] }],
  },
  createSession: {
    ...post("/sessions", null),
    ...secret("Sessions"),
    summary: "Begin a session of the dashboard",
    description: `Its key does what the master key does, except read or make a secret. At most ${maxSessions} last at a time: one more ends
the one that was not used for longest.`,
    body: { schema: SessionInput, optional: true },
    answers: { 201: { description: "The session and, only here, its key.", json: CreatedSession } },
    calls: [{ contract: keys, methods: ["createSession"] }],
  },
  endSession: {
    ...remove("/sessions/:id", null),
    ...tagged("Sessions"),
    summary: "End a session of the dashboard",
    description: "Its key stops working everywhere within a second. A session may end itself.",
    params: identified("session"),
    absent: { id: "session_not_found" },
    answers: { 204: nothing },
    calls: [{ contract: keys, methods: ["endSession"] }],
  },
  listCustomers: {
    ...get("/customers"),
    ...tagged("Customers"),
    summary: "List customers, oldest first",
    description: "For a session, keys and tokens that applications store in `meta` are redacted.",
    query: z.object(paging.query),
    answers: {
      200: {
        description: "The customers, without their tokens.",
        json: z.array(ListedCustomer),
        headers: countedPaging("customers"),
      },
    },
    calls: [{ contract: keys, methods: ["listCustomers", "countCustomers"] }],
  },
  deleteCustomer: {
    ...remove("/customers/:id", "customer"),
    ...tagged("Customers"),
    summary: "Delete a customer",
    params: identified("customer"),
    absent: { id: "customer_not_found" },
    answers: { 204: nothing },
    calls: [{ contract: keys, methods: ["deleteCustomer"] }],
  },
  listDeadMail: {
    ...get("/mail/dead"),
    ...tagged("Mail"),
    summary: "List mail that was given up, oldest first",
    query: z.object(paging.query),
    answers: { 200: { description: "The mail.", json: z.array(DeadMail), headers: countedPaging("mails") } },
    calls: [{ contract: mailer, methods: ["listDeadMail", "readQueue"] }],
  },
  retryDeadMail: {
    ...post("/mail/dead/:id/retry", "mail"),
    ...tagged("Mail"),
    summary: "Queue a given-up mail again",
    params: identified("mail"),
    absent: { id: "mail_not_found" },
    answers: { 204: nothing },
    calls: [{ contract: mailer, methods: ["retryDeadMail"] }],
  },
  readMqttAddress: {
    ...get("/mqtt"),
    ...tagged("Devices"),
    summary: "See where devices connect by MQTT",
    answers: {
      200: { description: "The broker's address; `host` is null for that of the API.", json: MqttAddress },
    },
    calls: [],
  },
  readMesh: {
    ...get("/mesh"),
    ...tagged("Mesh"),
    summary: "See which services run and what waits in their queues",
    description: `With \`Accept: text/event-stream\` it is sent again every 2 s, each event's \`data\` being what the JSON would be, until the
client leaves, the key ends or the gateway stops; a comment is sent when the state cannot be read.`,
    answers: {
      200: {
        description: "The mesh as it is now.",
        json: MeshState,
        other: { "text/event-stream": MeshState },
      },
    },
    calls: [],
    stream: "on_request",
  },
  readMeshHistory: {
    ...get("/mesh/history"),
    ...tagged("Mesh"),
    summary: "See the course of the last 24 hours",
    description: "A minute in each item, the oldest first. Minutes in which no gateway ran are absent.",
    answers: { 200: { description: "The minutes.", json: MeshHistory } },
    calls: [],
  },
  listMeshChanges: {
    ...get("/mesh/changes"),
    ...tagged("Mesh"),
    summary: "See who changed what last",
    description: `The last changes that requests made to devices, saved views, keys, customers and mail, newest first: at most 35 of master keys and 5
each of device keys, public keys and customers. Calls of devices, invitations and what devices report are not among them. A change is listed about a second after its answer, and lost if the gateway crashes
before.`,
    answers: { 200: { description: "The changes.", json: MeshChanges } },
    calls: [],
  },
});
