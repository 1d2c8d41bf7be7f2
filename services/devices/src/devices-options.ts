import type { mesh } from "@devmesh/contracts/mesh";
import type { Clock } from "@devmesh/service-kit/clock";
import type { Clients } from "@devmesh/service-kit/rpc/implementation";
import type { Background } from "./background.ts";
import type { Diagnostics } from "./diagnostics/diagnostics.ts";
import type { BrokerConnections } from "./presence/broker-connections.ts";
import type { DeviceEventPublisher } from "./registry/device-events.ts";
import type { Presence } from "./registry/device-view.ts";
import type { DeviceStore } from "./store/device-store.ts";

type OtherServices = Clients<(typeof mesh)["devices"]["calls"]>;

/** What the use cases are built from; none of it is owned by them. */
export interface DevicesOptions {
  readonly store: DeviceStore;
  readonly keys: OtherServices["keys"];
  readonly data: OtherServices["data"];
  readonly rpcBridge: OtherServices["rpc-bridge"];
  readonly connections: BrokerConnections;
  readonly presence: Presence;
  readonly events: DeviceEventPublisher;
  readonly diagnostics: Diagnostics;
  readonly background: Background;
  readonly clock: Clock;
}
