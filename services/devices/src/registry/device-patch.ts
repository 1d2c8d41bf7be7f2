import { isDeepStrictEqual } from "node:util";
import type { devices } from "@devmesh/contracts/devices";
import type { DevicePatch } from "@devmesh/contracts/model/device";
import { ViolationList } from "@devmesh/contracts/model/violation";
import type { Clock } from "@devmesh/service-kit/clock";
import type { Implementation } from "@devmesh/service-kit/implementation";
import { KeyedQueue } from "@devmesh/service-kit/keyed-queue";
import { concerns, unwritableMembers } from "../acl/principal-rights.ts";
import { applyPatch, writesShadow } from "../shadow/apply-patch.ts";
import { checkSectionSizes } from "../shadow/section-size.ts";
import type { DeviceStore, StoredDevice } from "../store/device-store.ts";
import { checkPatchBody } from "./body-check.ts";
import type { DeviceNotices } from "./device-events.ts";
import { describeDevice, describeDeviceFor, type Presence } from "./device-view.ts";
import { etagOf, matchesEtag } from "./etag.ts";

/** What changing a device needs. */
export interface PatchDeps {
  readonly store: DeviceStore;
  readonly presence: Presence;
  readonly notices: DeviceNotices;
  readonly clock: Clock;
}

/**
 * Checks rights, then the body, then versions, then sizes, and applies all of the patch or nothing. Writes on one
 * device stand in line in this process; against other processes the store compares revisions, and a write that lost
 * is checked and applied anew.
 */
export function createPatchDevice(deps: PatchDeps): Implementation<typeof devices>["patchDevice"] {
  const { store, presence, notices, clock } = deps;
  const writers = new KeyedQueue();

  return ({ id, principal, patch: body, if_match, taken_at }, ctx) =>
    writers.run(id, async () => {
      const checked = checkPatchBody(body);
      for (;;) {
        const device = concerns(principal, id) ? await store.find(id, ctx.signal) : null;
        if (device === null || isOfEarlierDevice(taken_at, device)) return ctx.fail("device_not_found");

        const pointers = unwritableMembers(principal, device.acl, body, device.shadow);
        if (pointers.length > 0) return ctx.fail("not_writable", { pointers });
        if ("violations" in checked) return ctx.fail("invalid_device", checked.violations.list);
        if (if_match !== undefined && !matchesEtag(if_match, etagOf(device)))
          return ctx.fail("precondition_failed");
        const { version } = device.shadow;
        if ((checked.patch.shadow?.version ?? version) !== version)
          return ctx.fail("version_conflict", { version });

        const changed = changeDevice(device, checked.patch, clock.now().getTime());
        if (changed === device) {
          return { etag: etagOf(device), device: describeDeviceFor(principal, device, presence) };
        }
        const oversized = new ViolationList();
        checkSectionSizes(changed.shadow, checked.patch.shadow ?? {}, oversized);
        if (oversized.any) return ctx.fail("shadow_too_large", oversized.list);

        if (!(await store.replace(changed, device.revision, ctx.signal))) continue;
        await notices.updated(describeDevice(changed, presence), ctx);
        return { etag: etagOf(changed), device: describeDeviceFor(principal, changed, presence) };
      }
    });
}

/**
 * By how much the broker's clock may be behind ours, in milliseconds. An id is free again 6 s after its device lost
 * its access at the earliest (`closeAgainAfterMs`), so nothing that device said is taken for the new one's.
 */
const clockSkewMs = 2_000;

/** Whether a message was still under way when the device it came from was deleted and its id given to this one. */
function isOfEarlierDevice(takenAt: string | undefined, device: StoredDevice): boolean {
  return takenAt !== undefined && Date.parse(takenAt) < device.created_at - clockSkewMs;
}

/** The device after the patch, one revision on; itself when the patch writes no shadow and changes nothing else. */
function changeDevice(device: StoredDevice, patch: DevicePatch, timestamp: number): StoredDevice {
  const { name = device.name, acl = device.acl } = patch;
  const shadow =
    patch.shadow && writesShadow(patch.shadow)
      ? applyPatch(device.shadow, patch.shadow, timestamp)
      : device.shadow;
  const same = name === device.name && shadow === device.shadow && isDeepStrictEqual(acl, device.acl);
  return same ? device : { ...device, name, acl, shadow, revision: device.revision + 1 };
}
