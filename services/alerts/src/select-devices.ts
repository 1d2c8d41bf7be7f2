import type { devices as contract } from "@devmesh/contracts/devices";
import type { DeviceCondition } from "@devmesh/contracts/model/device-condition";
import type { CallContext } from "@devmesh/service-kit/rpc/context";
import type { Client } from "@devmesh/service-kit/rpc/implementation";

/** Devices of a page. */
const pageSize = 1_000;

type NewCall = () => CallContext & Disposable;

/** Those of these devices that meet a condition. */
export async function selectAmong(
  devices: Pick<Client<typeof contract>, "selectDevices">,
  where: DeviceCondition,
  ids: readonly string[],
  newCall: NewCall,
): Promise<Set<string>> {
  const found = new Set<string>();
  for (let from = 0; from < ids.length; from += pageSize) {
    using call = newCall();
    const some = ids.slice(from, from + pageSize);
    const page = await devices.selectDevices({ where, ids: some, limit: pageSize }, call);
    for (const id of page.items) found.add(id);
  }
  return found;
}
