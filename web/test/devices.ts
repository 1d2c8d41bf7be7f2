import { defaultAcl } from "@devmesh/contracts/model/acl";
import type { Device } from "@devmesh/contracts/model/device";
import type { Diagnosis } from "@devmesh/contracts/model/diagnostics";

/** A device as the gateway answers it. */
export function deviceOf(id: string, changes: Partial<Device> = {}): Device {
  return {
    id,
    name: null,
    acl: defaultAcl,
    delta_metadata: true,
    online: false,
    last_seen: null,
    created_at: "2026-01-31T12:00:00.000Z",
    shadow: {
      state: { desired: {}, reported: { online: false } },
      metadata: { desired: {}, reported: {} },
      tags: {},
      version: 1,
      timestamp: 1_769_860_800_000,
    },
    ...changes,
  };
}

/** A login with a wrong password, and what differs from it. */
export function diagnosisOf(at: string, changes: Partial<Diagnosis> = {}): Diagnosis {
  return {
    name: "login_refused",
    reason: "wrong_password",
    address: "10.0.0.7",
    client_id: "pump",
    topic: null,
    detail: null,
    count: 1,
    first_at: at,
    last_at: at,
    ...changes,
  };
}
