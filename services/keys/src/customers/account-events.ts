import type { keyEvents } from "@devmesh/contracts/keys";
import type { customerChanges, keyChanges } from "@devmesh/contracts/model/notification";
import type { Clock } from "@devmesh/service-kit/clock";
import type { CallContext } from "@devmesh/service-kit/context";
import type { Publisher } from "@devmesh/service-kit/events";

/** Tells who watches the account what changed in it, by ids alone; best effort, it is stored before it is told. */
export interface AccountNotices {
  /** Of a master or device key. */
  keyChanged(id: string, change: (typeof keyChanges)[number], call: CallContext): Promise<void>;
  customerChanged(id: string, change: (typeof customerChanges)[number], call: CallContext): Promise<void>;
}

/** Notices as events of the mesh. */
export function createAccountNotices(publisher: Publisher<typeof keyEvents>, clock: Clock): AccountNotices {
  const { bestEffort } = publisher;
  const at = () => clock.now().toISOString();
  return {
    keyChanged: (id, change, call) => bestEffort.key_changed({ id, change, timestamp: at() }, { call }),
    customerChanged: (id, change, call) =>
      bestEffort.customer_changed({ id, change, timestamp: at() }, { call }),
  };
}
