import { customerAccess } from "./customer.ts";
import { deviceAccess } from "./device-access.ts";
import { deviceKey } from "./device-key.ts";
import { masterKey } from "./master-key.ts";
import { notificationStream } from "./notification.ts";
import { registration } from "./registration.ts";
import { storedData } from "./stored-data.ts";

/** Every route of the public API, by operation id. */
export const api = {
  ...registration,
  ...customerAccess,
  ...deviceAccess,
  ...masterKey,
  ...storedData,
  ...deviceKey,
  ...notificationStream,
} as const;

/** The `operationId` of a route. */
export type Operation = keyof typeof api;
