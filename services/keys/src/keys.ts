import type { keys } from "@devmesh/contracts/keys";
import type { Implementation } from "@devmesh/service-kit/rpc/implementation";
import { type ApiKeysOptions, createApiKeys } from "./api-keys/api-keys.ts";
import { createSessions, type SessionsOptions } from "./api-keys/sessions.ts";
import { createVerification, type VerificationOptions } from "./api-keys/verification.ts";
import { createDeviceCredentials, type DeviceCredentialsOptions } from "./credentials/device-credentials.ts";
import { type CustomersOptions, createCustomers } from "./customers/customers.ts";

type KeysOptions = VerificationOptions &
  ApiKeysOptions &
  SessionsOptions &
  DeviceCredentialsOptions &
  CustomersOptions;

/** The whole contract, from the use cases of each concept. */
export function createKeys(options: KeysOptions): Implementation<typeof keys> {
  return {
    ...createVerification(options),
    ...createApiKeys(options),
    ...createSessions(options),
    ...createDeviceCredentials(options),
    ...createCustomers(options),
  };
}
