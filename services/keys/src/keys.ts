import type { keys } from "@devmesh/contracts/keys";
import type { Implementation } from "@devmesh/service-kit/implementation";
import { type ApiKeysDependencies, createApiKeys } from "./api-keys/api-keys.ts";
import { createVerification, type VerificationDependencies } from "./api-keys/verification.ts";
import {
  createDeviceCredentials,
  type DeviceCredentialsDependencies,
} from "./credentials/device-credentials.ts";
import { type CustomersDependencies, createCustomers } from "./customers/customers.ts";

/** All that the use cases need. */
export type KeysDependencies = VerificationDependencies &
  ApiKeysDependencies &
  DeviceCredentialsDependencies &
  CustomersDependencies;

/** The whole contract, from the use cases of each concept. */
export function createKeys(dependencies: KeysDependencies): Implementation<typeof keys> {
  return {
    ...createVerification(dependencies),
    ...createApiKeys(dependencies),
    ...createDeviceCredentials(dependencies),
    ...createCustomers(dependencies),
  };
}
