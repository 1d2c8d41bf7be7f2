import { alertEvents, alerts } from "./alerts.ts";
import { brokerLogEvents } from "./broker-log.ts";
import { data, dataEvents } from "./data.ts";
import { deviceEvents, devices } from "./devices.ts";
import { gatewayEvents } from "./gateway.ts";
import { jobEvents, jobs } from "./jobs.ts";
import { keyEvents, keys } from "./keys.ts";
import { alertMailQueue, mailer, mailQueue } from "./mailer.ts";
import { api } from "./rest/api.ts";
import { rpcBridge, rpcEvents } from "./rpc-bridge.ts";
import { calls, defineService, mergeCalls, subscribesTo } from "./topology.ts";
import { webhookEvents, webhooks } from "./webhooks.ts";

/** All that is published about devices and their calls. */
const aboutDevices = [
  subscribesTo(deviceEvents, [
    "online",
    "offline",
    "created",
    "updated",
    "deleted",
    "throttled",
    "diagnosed",
  ]),
  subscribesTo(rpcEvents, ["rpc_in", "rpc_out"]),
] as const;

/**
 * The whole mesh. NATS users, their permissions (ADR 2) and the deployments are generated from it. A backup copies the
 * stores in this order: that of devices before that of their credentials.
 */
export const mesh = {
  gateway: defineService({
    calls: mergeCalls([
      ...Object.values(api).flatMap((route) => [...route.calls]),
      // Not in a route's `calls`, since no client gets their errors as they are.
      calls(keys, ["verify", "verifySession"]),
      calls(data, ["readBacklog"]),
      calls(rpcBridge, ["readBacklog"]),
      calls(mailer, ["readQueue"]),
      calls(jobs, ["readBacklog"]),
      calls(webhooks, ["readBacklog"]),
    ]),
    publishes: gatewayEvents,
    subscribes: [subscribesTo(keyEvents, ["revoked"]), subscribesTo(dataEvents, ["stored"])],
    follows: [
      ...aboutDevices,
      subscribesTo(keyEvents, ["key_changed", "customer_changed"]),
      subscribesTo(jobEvents, ["execution_changed", "job_changed"]),
      subscribesTo(webhookEvents, ["webhook_changed"]),
      subscribesTo(alertEvents, ["alert_changed"]),
    ],
    rights: ["discovery", "history"],
    httpPort: 8080,
  }),
  devices: defineService({
    serves: devices,
    calls: [
      calls(keys, [
        "issueCredentials",
        "readCredentials",
        "rotateToken",
        "rotatePublicKey",
        "revokeDevice",
        "forgetDevice",
      ]),
      calls(data, ["purgeDevice", "admitDevice"]),
      calls(rpcBridge, ["endSessions", "wipeDevice"]),
      calls(jobs, ["dropDevice"]),
      calls(webhooks, ["purgeDevice"]),
    ],
    publishes: deviceEvents,
    subscribes: [
      subscribesTo(rpcEvents, ["hoarding", "diagnostics"]),
      subscribesTo(keyEvents, ["diagnostics"]),
      subscribesTo(dataEvents, ["diagnostics"]),
      subscribesTo(brokerLogEvents, ["diagnostics"]),
      // Each replica records what one of them publishes.
      subscribesTo(deviceEvents, ["throttled"]),
    ],
    rights: ["device_connections"],
    store: { volumeGib: 2 },
  }),
  keys: defineService({
    serves: keys,
    calls: [],
    publishes: keyEvents,
    subscribes: [subscribesTo(deviceEvents, ["throttled"])],
    produces: [mailQueue],
    rights: ["auth_callout"],
    store: { volumeGib: 1 },
  }),
  data: defineService({
    serves: data,
    publishes: dataEvents,
    subscribes: [subscribesTo(gatewayEvents, ["records_wanted"])],
    rights: ["device_data"],
    store: { volumeGib: 20 },
  }),
  "rpc-bridge": defineService({
    serves: rpcBridge,
    calls: [
      calls(devices, [
        "listDevices",
        "selectDevices",
        "readPresence",
        "readPresences",
        "readConnections",
        "readDevice",
        "updateShadows",
        "readDeltas",
      ]),
    ],
    publishes: rpcEvents,
    subscribes: [subscribesTo(deviceEvents, ["online", "offline", "updated", "deleted"])],
    rights: ["device_topics"],
  }),
  jobs: defineService({
    serves: jobs,
    calls: [
      calls(devices, [
        "selectDevices",
        "readPresence",
        "readPresences",
        "readDevice",
        "readDelta",
        "patchDevice",
        "authorize",
      ]),
      calls(rpcBridge, ["attemptCall"]),
    ],
    publishes: jobEvents,
    // Each replica wakes the one that sends.
    subscribes: [subscribesTo(deviceEvents, ["online", "updated"]), subscribesTo(jobEvents, ["due"])],
    store: { volumeGib: 12 },
  }),
  alerts: defineService({
    serves: alerts,
    calls: [
      calls(devices, ["selectDevices", "listDevices", "readDevice"]),
      calls(data, ["followRecords", "queryRecords", "listLatest"]),
      calls(webhooks, ["deliver", "readWebhook"]),
    ],
    publishes: alertEvents,
    follows: aboutDevices,
    produces: [alertMailQueue],
    store: { volumeGib: 2 },
  }),
  mailer: defineService({
    serves: mailer,
    calls: [calls(keys, ["readInvitation"])],
    consumes: [mailQueue, alertMailQueue],
    reaches: [25, 465, 587],
  }),
  webhooks: defineService({
    serves: webhooks,
    calls: [calls(devices, ["readDevice"]), calls(data, ["followRecords"])],
    publishes: webhookEvents,
    rights: ["event_outbox"],
    store: { volumeGib: 1 },
    reaches: "public",
  }),
} as const;

/** Programs beside each nats-server, out of the image of a service. */
export const sidecars = {
  "broker-log": defineService({ publishes: brokerLogEvents, memoryMib: 128 }),
} as const;

/** All that have a user of the broker. */
export const brokerClients = { ...mesh, ...sidecars } as const;

/** A service of the mesh, by the name of its folder, its broker user and its queue group. */
export type ServiceName = keyof typeof mesh;

/** The services, in the order of their declaration. */
export const serviceNames = Object.keys(mesh) as ServiceName[];

/** The services with a store, in the same order. */
export const storeOwners: readonly ServiceName[] = serviceNames.filter((service) => mesh[service].store);
