import type { ContractDeclaration } from "@devmesh/contracts/contract";
import { defaultAcl } from "@devmesh/contracts/model/acl";
import type { Device } from "@devmesh/contracts/model/device";
import type { Implementation } from "@devmesh/service-kit/rpc/implementation";

/** An implementation of a contract of which a test needs a few methods; the others fail. */
export function fakeContract<C extends ContractDeclaration>(
  contract: C,
  methods: Partial<Implementation<C>>,
): Implementation<C> {
  const others = Object.keys(contract.methods).map((method) => [
    method,
    () => Promise.reject(new Error(`the fake of ${contract.service} has no ${method}`)),
  ]);
  return { ...Object.fromEntries(others), ...methods };
}

/** A device as `devices` returns it, with defaults for what a test does not set. */
export function fakeDevice(id: string, more: Partial<Device> = {}): Device {
  return {
    id,
    name: null,
    acl: defaultAcl,
    delta_metadata: true,
    online: false,
    last_seen: null,
    created_at: "2026-01-01T00:00:00.000Z",
    shadow: {
      state: { desired: { app: {} }, reported: { app: {}, online: false } },
      metadata: { desired: {}, reported: {} },
      tags: {},
      version: 0,
      timestamp: 0,
    },
    ...more,
  };
}
