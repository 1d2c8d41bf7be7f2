import type { ChangedKind } from "../model/mesh-change.ts";
import { alertRoutes } from "./alerts.ts";
import { customerAccess } from "./customer.ts";
import { deviceAccess } from "./device-access.ts";
import { deviceKey } from "./device-key.ts";
import { firmware } from "./firmware.ts";
import { masterKey } from "./master-key.ts";
import { notificationStream } from "./notification.ts";
import { registration } from "./registration.ts";
import { storedData } from "./stored-data.ts";
import { webhooks } from "./webhooks.ts";

/** The groups of routes in the order of their use, with what each is for. */
export const tags = {
  Devices: "Devices, their shadows and secrets; with a master key.",
  RPC: "Functions of connected devices; with a master key.",
  Work: "Calls that wait for their device, and jobs over many devices; with a master key.",
  Firmware: "Files that devices can run; with a master key.",
  "Stored data": "What devices published below `db/`.",
  "Notification stream": "What happens, as it happens.",
  Alerts: "Rules, what they found wrong, and who is notified; with a master key.",
  Webhooks: "What happens, sent to a URL; with a master key.",
  Boards: "Charts and values in a grid; with a master key.",
  Keys: "Master and device keys.",
  Sessions: "Browsers that are signed in to the dashboard.",
  "Device key": "One device, the `app` sections of its shadow; with a device key.",
  "Device access": "One device, as far as its ACL allows; with its public key.",
  "Customer registration": "Invitations by mail, without a key.",
  "Customer access": "The customer's own object, with the access token of the mail.",
  Customers: "All customers; with a master key.",
  Mail: "Mail that could not be sent; with a master key.",
  Mesh: "The services and queues that serve the API; with a master key.",
} as const;

/** Every route of the public API, by operation id. */
export const api = {
  ...registration,
  ...customerAccess,
  ...deviceAccess,
  ...masterKey,
  ...firmware,
  ...alertRoutes,
  ...storedData,
  ...deviceKey,
  ...notificationStream,
  ...webhooks,
} as const;

/** The `operationId` of a route. */
export type Operation = keyof typeof api;

/** Operations that `GET /mesh/changes` lists. */
export type ChangeOperation = {
  [O in Operation]: (typeof api)[O] extends { readonly change: ChangedKind } ? O : never;
}[Operation];
