import { data } from "./data.ts";
import { deviceEvents, devices } from "./devices.ts";
import { keyEvents, keys } from "./keys.ts";
import { mailer, mailQueue } from "./mailer.ts";
import { rpcBridge, rpcEvents } from "./rpc-bridge.ts";
import { calls, defineService, hears } from "./topology.ts";

/** The whole mesh: who answers what, who calls whom. NATS users and their permissions are generated from it (ADR 2). */
export const mesh = {
  gateway: defineService({
    serves: null,
    calls: [
      calls(keys, [
        "verify",
        "listKeys",
        "createKey",
        "deleteKey",
        "invite",
        "confirmCustomer",
        "readCustomer",
        "updateCustomer",
        "listCustomers",
        "deleteCustomer",
      ]),
      calls(devices, [
        "listDevices",
        "createDevice",
        "readDevice",
        "patchDevice",
        "deleteDevice",
        "readCredentials",
        "rotateToken",
        "rotatePublicKey",
        "authorize",
      ]),
      calls(data, ["queryRecords"]),
      calls(rpcBridge, ["call"]),
      calls(mailer, ["listDeadMail", "retryDeadMail", "readQueue"]),
    ],
    publishes: null,
    subscribes: [hears(keyEvents, ["revoked"])],
    produces: [],
    consumes: [],
    rights: [],
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
      calls(rpcBridge, ["wipeDevice"]),
    ],
    publishes: deviceEvents,
    subscribes: [],
    produces: [],
    consumes: [],
    rights: ["device_connections"],
  }),
  keys: defineService({
    serves: keys,
    calls: [calls(rpcBridge, ["awaitIngestion"])],
    publishes: keyEvents,
    subscribes: [],
    produces: [mailQueue],
    consumes: [],
    rights: ["auth_callout"],
  }),
  data: defineService({
    serves: data,
    calls: [],
    publishes: null,
    subscribes: [],
    produces: [],
    consumes: [],
    rights: ["device_data"],
  }),
  "rpc-bridge": defineService({
    serves: rpcBridge,
    calls: [calls(devices, ["listDevices", "readPresence", "readDevice", "patchDevice", "readDelta"])],
    publishes: rpcEvents,
    subscribes: [hears(deviceEvents, ["online", "offline", "updated", "created", "deleted"])],
    produces: [],
    consumes: [],
    rights: ["device_topics"],
  }),
  mailer: defineService({
    serves: mailer,
    calls: [calls(keys, ["readInvitation"])],
    publishes: null,
    subscribes: [],
    produces: [],
    consumes: [mailQueue],
    rights: [],
  }),
} as const;

export type ServiceName = keyof typeof mesh;
