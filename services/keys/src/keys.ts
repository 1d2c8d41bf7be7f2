import type { keys } from "@devmesh/contracts/keys";
import type { mailQueue } from "@devmesh/contracts/mailer";
import type { Clock } from "@devmesh/service-kit/clock";
import type { Implementation } from "@devmesh/service-kit/implementation";
import type { Producer } from "@devmesh/service-kit/queue-producer";
import type { AccountEvents } from "./account-events.ts";
import { createApiKeys } from "./api-keys/api-keys.ts";
import type { KeyUses } from "./api-keys/key-uses.ts";
import { createVerification } from "./api-keys/verification.ts";
import { createDeviceCredentials } from "./credentials/device-credentials.ts";
import { createCustomers } from "./customers/customers.ts";
import type { TakeMailSlot } from "./customers/mail-allowance.ts";
import { createSessions } from "./sessions/sessions.ts";
import type { Encryption } from "./store/encryption.ts";
import type { KeyStore } from "./store/key-store.ts";

/** What the use cases need. */
export interface KeysOptions {
  readonly store: KeyStore;
  readonly encryption: Encryption;
  readonly clock: Clock;
  /** Makes ids whose text order is the order of their creation. */
  readonly newId: () => string;
  readonly uses: KeyUses;
  readonly sessionUses: KeyUses;
  readonly events: AccountEvents;
  readonly mail: Producer<typeof mailQueue>;
  readonly takeMailSlot: TakeMailSlot;
  /** Whether a list shows the secrets (`KEYS_REVEAL`). */
  readonly revealInLists: boolean;
}

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
