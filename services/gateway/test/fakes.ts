import { createHash } from "node:crypto";
import { alerts } from "@devmesh/contracts/alerts";
import { data } from "@devmesh/contracts/data";
import { devices } from "@devmesh/contracts/devices";
import { jobs } from "@devmesh/contracts/jobs";
import { keys } from "@devmesh/contracts/keys";
import { mailer } from "@devmesh/contracts/mailer";
import { defaultAcl } from "@devmesh/contracts/model/acl";
import { Alert, AlertSummary, RuleTrial } from "@devmesh/contracts/model/alert";
import type { DataRecord } from "@devmesh/contracts/model/data-record";
import type { Execution } from "@devmesh/contracts/model/execution";
import { type Firmware, firmwareBounds } from "@devmesh/contracts/model/firmware";
import type { Job } from "@devmesh/contracts/model/job";
import { isJsonObject } from "@devmesh/contracts/model/json";
import { AlertChannel, AlertRule } from "@devmesh/contracts/model/rule";
import { Silence } from "@devmesh/contracts/model/silence";
import { CreatedWebhook, Webhook, WebhookSecret, WebhookTest } from "@devmesh/contracts/model/webhook";
import type { Principal } from "@devmesh/contracts/principal";
import { rpcBridge } from "@devmesh/contracts/rpc-bridge";
import { webhooks } from "@devmesh/contracts/webhooks";
import type { Bus } from "@devmesh/service-kit/bus";
import { announce } from "@devmesh/service-kit/process/discovery";
import type { Implementation } from "@devmesh/service-kit/rpc/implementation";
import { serve } from "@devmesh/service-kit/rpc/serve";
import { fakeContract, fakeDevice } from "@devmesh/testkit/fakes";
import type { z } from "zod";

/** A key of each kind, as `keys` would have issued them. */
export const secrets = {
  master: "mk_00000000000000000000000000000001",
  session: "sk_00000000000000000000000000000006",
  device_key: "dk_00000000000000000000000000000002",
  public_key: "pk_00000000000000000000000000000003",
  customer: "ck_00000000000000000000000000000004",
  device: "dt_00000000000000000000000000000005",
} as const;

/** Tickets of an update that is under way, and of one that has ended. */
export const downloadTicket = "ot_00000000000000000000000000000007";
export const endedTicket = "ot_00000000000000000000000000000008";

const principals: Readonly<Record<Exclude<keyof typeof secrets, "session">, Principal>> = {
  master: { kind: "master" },
  device_key: { kind: "device_key", device_id: "pump" },
  public_key: { kind: "public_key", device_id: "pump" },
  customer: { kind: "customer", customer_id: "ann" },
  device: { kind: "device", device_id: "pump" },
};

const at = "2026-01-01T00:00:00.000Z";

/** A record as `data` returns it, with defaults for what a test does not set. */
export function record(id: number, more: Partial<DataRecord> = {}): DataRecord {
  return { id, timestamp: at, device_id: "pump", topic: "db/pump/t", message: `m${id}`, ...more };
}

const customer = {
  id: "ann",
  email: "ann@example.com",
  token: secrets.customer,
  meta: {},
  created_at: at,
  updated_at: at,
  confirmed_at: null,
};

const listedKey = {
  id: "id-master",
  key: secrets.master,
  access: "full",
  device_id: null,
  name: "Ann",
  created_at: at,
  last_used: null,
  expires_at: null,
} as const;

const session = {
  id: "id-session",
  master_key_id: "id-master",
  name: null,
  created_at: at,
  last_used: null,
  expires_at: "2999-01-01T00:00:00.000Z",
};

const board = { id: "wall", name: "Wall", revision: 2, created_at: at, changed_at: at, panels: [] };
const view = { id: "v1", name: "Silent", query: "where=silent%3A24h" };

type Fake<C extends Parameters<typeof serve>[1]> = {
  -readonly [M in keyof Implementation<C>]: Implementation<C>[M];
};

/** Fakes of the services that a gateway calls; each method can be replaced while they serve. */
export interface Fakes {
  readonly keys: Fake<typeof keys>;
  readonly devices: Fake<typeof devices>;
  readonly data: Fake<typeof data>;
  readonly bridge: Fake<typeof rpcBridge>;
  readonly jobs: Fake<typeof jobs>;
  readonly webhooks: Fake<typeof webhooks>;
  readonly alerts: Fake<typeof alerts>;
  readonly mailer: Fake<typeof mailer>;
  /** Back to what they did first. */
  reset(): void;
}

/** A refused login of the device `pump`. */
export const diagnosis = {
  name: "login_refused",
  reason: "wrong_password",
  address: "10.0.0.7",
  client_id: "pump",
  topic: null,
  count: 2,
  first_at: at,
  last_at: at,
} as const;

/** A content of two and a half pieces. */
export const content = Buffer.from(
  Uint8Array.from({ length: 2.5 * firmwareBounds.pieceBytes }, (_, at) => (at * 7) % 251),
);

/** Firmware with that content; as `empty` it has none. */
export const firmware: Firmware = {
  id: "pump",
  name: "pump",
  version: "1.4.0",
  size: content.length,
  sha256: createHash("sha256").update(content).digest("hex"),
  md5: createHash("md5").update(content).digest("hex"),
  reported_as: "1.4.0",
  requires: null,
  signature: null,
  note: null,
  ready: true,
  created_at: at,
  created_by: { kind: "master", key_id: "id-master" },
};

/** A call that waits for the device `pump`. */
const execution: Execution = {
  id: "e1",
  device_id: "pump",
  job_id: null,
  action: { kind: "rpc", func: "Allowed", timeout: 10_000 },
  state: "queued",
  reason: null,
  stage: null,
  percent: null,
  attempts: 0,
  max_attempts: 1,
  result: null,
  error: null,
  created_at: at,
  created_by: { kind: "public_key", key_id: "id-public_key" },
  sent_at: null,
  ended_at: null,
  expires_at: "2999-01-01T00:00:00.000Z",
};

/** A job for all devices. */
const job: Job = {
  id: "j1",
  name: null,
  target: { where: {} },
  action: { kind: "rpc", func: "Allowed", params: { key: secrets.public_key }, timeout: 10_000 },
  continuous: false,
  expires_in: "P7D",
  retry: { attempts: 1, on: ["timed_out"], after: "PT1M" },
  rollout: { stages: [] },
  pause_at: null,
  state: "running",
  why: null,
  devices: 1,
  released: 1,
  stage: null,
  counts: { queued: 1, sent: 0, succeeded: 0, failed: 0, timed_out: 0, expired: 0, cancelled: 0 },
  created_at: at,
  created_by: { kind: "master", key_id: "id-master" },
  ended_at: null,
  log: [{ at, by: { kind: "master", key_id: "id-master" }, what: "created" }],
};

/** What the API's description shows of a model. */
function exampleOf<T extends z.ZodType>(model: T): z.output<T> {
  return model.parse(model.meta()?.example);
}

function firstImplementations() {
  const keyImplementation: Fake<typeof keys> = fakeContract(keys, {
    verify: async ({ key }, context) => {
      for (const [kind, secret] of Object.entries(secrets)) {
        if (secret !== key || kind === "session") continue;
        return {
          key_id: `id-${kind}`,
          principal: principals[kind as keyof typeof principals],
          expires_at: null,
          ...(kind === "master" && { name: "Ann" }),
        };
      }
      return context.fail("key_invalid");
    },
    verifySession: async ({ key }, context) =>
      key === secrets.session ? { ...session, master_key_name: "Ann" } : context.fail("key_invalid"),
    listKeys: async () => ({ next: null, items: [listedKey] }),
    listKeysWithoutSecrets: async () => ({ next: null, items: [{ ...listedKey, key: null }] }),
    listSessions: async () => [session],
    createSession: async ({ master_key_id, name = null }) => ({
      ...session,
      master_key_id,
      name,
      key: secrets.session,
    }),
    endSession: async () => ({}),
    countKeys: async () => ({ count: 0 }),
    createKey: async ({ name = null, device_id = null, expires_at = null }) => ({
      id: "k1",
      key: "mk_00000000000000000000000000000009",
      access: device_id === null ? ("full" as const) : ("device" as const),
      device_id,
      name,
      created_at: at,
      last_used: null,
      expires_at,
    }),
    deleteKey: async ({ id }, context) => (id === "last" ? context.fail("last_master_key") : {}),
    invite: async () => ({}),
    confirmCustomer: async ({ confirmation }, context) =>
      confirmation === "good" ? { email: "ann<b>@example.com" } : context.fail("confirmation_invalid"),
    readCustomer: async () => customer,
    updateCustomer: async ({ body: { meta = {} } }, context) =>
      isJsonObject(meta)
        ? { ...customer, meta }
        : context.fail("customer_read_only", [{ pointer: "/meta", detail: "must be a JSON object" }]),
    listCustomers: async () => {
      const { token: _, ...listed } = customer;
      return { next: null, items: [listed] };
    },
    countCustomers: async () => ({ count: 1 }),
    deleteCustomer: async () => ({}),
  });
  const deviceImplementation: Fake<typeof devices> = fakeContract(devices, {
    listDevices: async () => ({ next: null, items: [fakeDevice("pump")] }),
    countDevices: async () => ({ count: 1 }),
    facetDevices: async ({ facets }) => ({
      total: 1,
      facets: Object.fromEntries(facets.map((name) => [name, [{ value: "x", count: 1 }]])),
      others: Object.fromEntries(facets.map((name) => [name, 0])),
    }),
    listDiagnostics: async () => ({ next: null, items: [{ ...diagnosis, id: "pump" }] }),
    summarizeFleet: async () => ({
      counted_at: new Date(0).toISOString(),
      devices: 1,
      online: 0,
      firmware: [],
      other_firmware: 0,
      no_firmware: 1,
      labels: [],
      other_labels: 0,
      silent: [],
    }),
    createDevice: async ({ id = "made" }, context) => {
      if (id === "pump") return context.fail("device_exists");
      return { ...fakeDevice(id), token: secrets.device, public_key: secrets.public_key };
    },
    readDevice: async ({ id }, context) =>
      id === "pump" ? { etag: '"7"', device: fakeDevice(id) as never } : context.fail("device_not_found"),
    patchDevice: async ({ id }, context) =>
      id === "pump" ? { etag: '"8"', device: fakeDevice(id) as never } : context.fail("device_not_found"),
    deleteDevice: async () => ({}),
    readDiagnostics: async ({ id }, context) =>
      id === "pump" ? [diagnosis] : context.fail("device_not_found"),
    listUnknownDevices: async () => {
      const { name: _, topic: __, ...login } = diagnosis;
      return [{ ...login, id: "pmup", reason: "unknown_device" }];
    },
    listViews: async () => [view],
    createView: async (made, context) =>
      made.name === view.name ? context.fail("view_name_taken") : { ...made, id: "v2" },
    patchView: async ({ id }, context) => (id === "none" ? context.fail("view_not_found") : view),
    deleteView: async () => ({}),
    listBoards: async () => [{ ...board, panels: 0 }],
    createBoard: async (made) => ({ ...board, ...made }),
    readBoard: async ({ id }, context) => (id === "none" ? context.fail("board_not_found") : board),
    patchBoard: async ({ revision = 1 }, context) =>
      revision === board.revision ? board : context.fail("board_changed", { revision: board.revision }),
    deleteBoard: async () => ({}),
    readCredentials: async () => ({ token: secrets.device, public_key: secrets.public_key }),
    rotateToken: async () => ({ token: secrets.device }),
    rotatePublicKey: async () => ({ public_key: secrets.public_key }),
    readPresence: async ({ id }, context) =>
      id === "pump" ? { online: true } : context.fail("device_not_found"),
    authorize: async ({ action }, context) => {
      if (action.kind === "rpc") {
        return action.func === "Allowed" ? { query: null } : context.fail("rpc_not_permitted");
      }
      return action.name === "known" ? { query: { topic: "temp/#" } } : context.fail("query_not_found");
    },
    authorizeSeries: async ({ name }, context) => {
      if (name === "records") return context.fail("series_not_permitted");
      if (name !== "known") return context.fail("query_not_found");
      return { query: { topic: "temp", pointers: ["/celsius"], since: "PT24H" } };
    },
    readAccess: async ({ id }, context) =>
      id === "pump" ? { acl: defaultAcl, created_at: at } : context.fail("device_not_found"),
  });
  const dataImplementation: Fake<typeof data> = fakeContract(data, {
    queryRecords: async () => ({ next: null, items: [record(1)] }),
    readLatest: async () => ({ next: null, items: [record(1)] }),
    countTopics: async () => ({ count: 1 }),
    readSeries: async ({ every, from, until }) => ({ every, from, until, partial: false, spans: [] }),
    listSeries: async () => ({ series: [], left_out: 0 }),
    readBacklog: async () => ({ waiting: 7 }),
  });
  const bridgeImplementation: Fake<typeof rpcBridge> = fakeContract(rpcBridge, {
    call: async ({ params }) => ({ result: params ?? null }),
    readBacklog: async () => ({ waiting: 2 }),
  });
  const jobImplementation: Fake<typeof jobs> = fakeContract(jobs, {
    createCall: async ({ device_id }, context) =>
      device_id === "pump" ? execution : context.fail("device_not_found"),
    readExecution: async () => execution,
    listExecutions: async () => ({ next: null, items: [execution] }),
    cancelExecution: async () => ({ ...execution, state: "cancelled", reason: "by_request" }),
    tryTarget: async () => ({ devices: 1, online: 1, not_found: 0, not_eligible: 0, sample: ["pump"] }),
    createJob: async () => job,
    listJobs: async () => ({ next: null, items: [job] }),
    readJob: async () => job,
    changeJob: async () => ({ ...job, state: "paused", why: "by_request" }),
    listJobExecutions: async () => ({ next: null, items: [{ ...execution, job_id: "j1" }] }),
    readBacklog: async () => ({ waiting: 3 }),
    createFirmware: async () => ({ ...firmware, ready: false }),
    listFirmware: async () => ({ next: null, items: [firmware] }),
    readFirmware: async ({ id }) => ({ ...firmware, id, ready: id !== "empty" }),
    deleteFirmware: async () => ({}),
    putContent: async () => ({}),
    endContent: async ({ id }) => ({ ...firmware, id }),
    openTicket: async ({ ticket }, context) =>
      ticket === downloadTicket
        ? { execution_id: "e2", firmware: { ...firmware, id: "pump" } }
        : context.fail(ticket === endedTicket ? "ticket_ended" : "ticket_unknown"),
    noteDownload: async () => ({}),
    readContent: async ({ number }) => ({
      data: content
        .subarray(number * firmwareBounds.pieceBytes, (number + 1) * firmwareBounds.pieceBytes)
        .toString("base64"),
    }),
  });
  const mailerImplementation: Fake<typeof mailer> = fakeContract(mailer, {
    listDeadMail: async () => ({ next: null, items: [] }),
    retryDeadMail: async () => ({}),
    readQueue: async () => ({ waiting: 1, dead: 4, delivery: "files" }),
  });
  const rule = exampleOf(AlertRule);
  const alert = exampleOf(Alert);
  const channel = exampleOf(AlertChannel);
  const alertImplementation: Fake<typeof alerts> = fakeContract(alerts, {
    listRules: async () => ({ next: null, items: [rule] }),
    createRule: async () => rule,
    readRule: async () => rule,
    changeRule: async () => rule,
    deleteRule: async () => ({}),
    tryRule: async () => exampleOf(RuleTrial),
    listAlerts: async () => ({ next: null, items: [alert] }),
    readAlert: async () => alert,
    changeAlert: async () => alert,
    listChannels: async () => ({ next: null, items: [channel] }),
    createChannel: async () => channel,
    changeChannel: async () => channel,
    testChannel: async () => ({}),
    deleteChannel: async () => ({}),
    countAlerts: async () => ({ count: 1 }),
    countSettings: async () => ({ rules: 1, channels: 1, silences: 1 }),
    summarizeAlerts: async () => exampleOf(AlertSummary),
    listSilences: async () => ({ next: null, items: [exampleOf(Silence)] }),
    createSilence: async () => exampleOf(Silence),
    deleteSilence: async () => ({}),
  });
  const webhook = exampleOf(Webhook);
  const webhookImplementation: Fake<typeof webhooks> = fakeContract(webhooks, {
    createWebhook: async () => exampleOf(CreatedWebhook),
    listWebhooks: async () => ({ next: null, items: [webhook] }),
    readWebhook: async () => webhook,
    patchWebhook: async () => webhook,
    deleteWebhook: async () => ({}),
    readSecret: async () => exampleOf(WebhookSecret),
    rotateSecret: async () => exampleOf(WebhookSecret),
    testWebhook: async () => exampleOf(WebhookTest),
    listDeadDeliveries: async () => ({ next: null, items: [] }),
    retryDeadDeliveries: async () => ({ queued: 1 }),
    readBacklog: async () => ({ waiting: 0 }),
  });
  return {
    keys: keyImplementation,
    devices: deviceImplementation,
    data: dataImplementation,
    bridge: bridgeImplementation,
    jobs: jobImplementation,
    alerts: alertImplementation,
    webhooks: webhookImplementation,
    mailer: mailerImplementation,
  };
}

/** Serves a fake of each service that the gateway calls, by the contract itself. */
export function serveFakes(bus: Bus): Fakes {
  const fakes = firstImplementations();
  const served = [
    serve(bus, keys, late(fakes.keys)),
    serve(bus, devices, late(fakes.devices)),
    serve(bus, data, late(fakes.data)),
    serve(bus, rpcBridge, late(fakes.bridge)),
    serve(bus, jobs, late(fakes.jobs)),
    serve(bus, webhooks, late(fakes.webhooks)),
    serve(bus, alerts, late(fakes.alerts)),
    serve(bus, mailer, late(fakes.mailer)),
  ];
  announce(bus, { description: "All but the gateway.", served });
  return {
    ...fakes,
    reset() {
      const first = firstImplementations();
      for (const name of Object.keys(first) as (keyof typeof first)[])
        Object.assign(fakes[name], first[name]);
    },
  };
}

/** Looks a method up when it is called, so that a replaced one is taken. */
function late<I extends object>(implementation: I): I {
  return Object.fromEntries(
    Object.keys(implementation).map((method) => [
      method,
      (...args: unknown[]) =>
        (implementation as Record<string, (...args: unknown[]) => unknown>)[method]?.(...args),
    ]),
  ) as I;
}
