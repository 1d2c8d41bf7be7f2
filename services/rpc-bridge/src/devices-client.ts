import type { mesh } from "@devmesh/contracts/mesh";
import type { Clients } from "@devmesh/service-kit/rpc/implementation";

/** What the bridge asks of the registry. */
export type DevicesClient = Clients<(typeof mesh)["rpc-bridge"]["calls"]>["devices"];
