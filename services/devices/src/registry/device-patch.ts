import { isDeepStrictEqual } from "node:util";
import { devices } from "@devmesh/contracts/devices";
import type { DevicePatch } from "@devmesh/contracts/model/device";
import { changedLabels, labelsOf } from "@devmesh/contracts/model/labels";
import { ViolationList } from "@devmesh/contracts/model/violation";
import type { Clock } from "@devmesh/service-kit/clock";
import { describeError, ServiceError, sendableError } from "@devmesh/service-kit/errors";
import { KeyedQueue } from "@devmesh/service-kit/keyed-queue";
import type { Context } from "@devmesh/service-kit/rpc/context";
import type { Implementation } from "@devmesh/service-kit/rpc/implementation";
import { isStoreUnavailable } from "@devmesh/store/store-unavailable";
import type { z } from "zod";
import { mayAccess, unwritableMembers } from "../acl/principal-rights.ts";
import type { DeviceEventPublisher } from "../device-events.ts";
import type { Presence } from "../presence.ts";
import { applyPatch, checkSectionSizes, writesShadow } from "../shadow/apply-patch.ts";
import type { DeviceDocument, DeviceStore, StoredDevice } from "../store/device-store.ts";
import { checkPatchBody } from "./body-check.ts";
import { describeDevice, describeDeviceFor } from "./device-view.ts";
import { etagOf, matchesEtag } from "./etag.ts";

/** Options of patches. */
export interface DevicePatchOptions {
  readonly store: Pick<DeviceStore, "find" | "replace">;
  readonly presence: Presence;
  readonly events: Pick<DeviceEventPublisher, "updated">;
  readonly clock: Clock;
}

type PatchContext = Context<typeof devices, "patchDevice" | "updateShadows">;
type Patch = z.output<(typeof devices)["methods"]["patchDevice"]["in"]>;

/** Changes of devices by their owners, and of shadows by devices themselves. */
export function createDevicePatches(
  options: DevicePatchOptions,
): Pick<Implementation<typeof devices>, "patchDevice" | "updateShadows"> {
  const { presence } = options;
  const write = createWrite(options);
  const { errors } = devices.methods.updateShadows;

  return {
    async patchDevice(patch, ctx) {
      const device = await write(patch, ctx);
      return { etag: etagOf(device, presence), device: describeDeviceFor(patch.principal, device, presence) };
    },

    updateShadows({ updates }, ctx) {
      const apply = async ({ id, patch: shadow, taken_at }: (typeof updates)[number]) => {
        const principal = { kind: "device", device_id: id } as const;
        try {
          const { version, timestamp } = (await write({ id, principal, patch: { shadow }, taken_at }, ctx))
            .shadow;
          return { version, timestamp };
        } catch (cause) {
          const error = isStoreUnavailable(cause)
            ? ServiceError.of("unavailable", { cause, service: devices.service })
            : sendableError(ServiceError.from(cause), errors);
          if (error.reason === "internal") ctx.log.error({ err: cause, device_id: id }, "an update failed");
          return { error: describeError(error) };
        }
      };
      return Promise.all(updates.map(apply));
    },
  };
}

/**
 * Checks rights, body, versions and sizes in this order, and applies all of the patch or nothing; resolves with the
 * device after it. Writes to one device are queued in this process; a write that loses against another process is
 * checked and applied again.
 */
function createWrite({ store, presence, events, clock }: DevicePatchOptions) {
  const writers = new KeyedQueue();

  return (
    { id, principal, patch: body, if_match, taken_at }: Patch,
    ctx: PatchContext,
  ): Promise<StoredDevice> =>
    writers.run(id, async () => {
      const checked = checkPatchBody(id, body);
      for (;;) {
        const device = mayAccess(principal, id) ? await store.find(id, ctx.signal) : null;
        if (device === null || isOfEarlierDevice(taken_at, device)) return ctx.fail("device_not_found");

        const pointers = unwritableMembers(principal, device.acl, body, device.shadow);
        if (pointers.length > 0) return ctx.fail("not_writable", { pointers });
        if ("violations" in checked) return ctx.fail("invalid_device", checked.violations.list);
        if (if_match !== undefined && !matchesEtag(if_match, device)) return ctx.fail("precondition_failed");
        const { version } = device.shadow;
        if ((checked.patch.shadow?.version ?? version) !== version)
          return ctx.fail("version_conflict", { version });

        const patch = withLabels(device, checked.patch);
        const changed = changeDevice(device, patch, clock.now().getTime());
        if (changed === device) return device;
        const oversized = new ViolationList();
        checkSectionSizes(changed.shadow, patch.shadow ?? {}, oversized);
        if (oversized.any) return ctx.fail("shadow_too_large", oversized.list);

        if (!(await store.replace(changed, device.revision, ctx.signal))) continue;
        // Sent in the order of versions. Its acknowledgement can take two seconds, for which the next write would wait.
        void events.updated(describeDevice(changed, presence), ctx);
        return changed;
      }
    });
}

/**
 * How far the broker's clock may lag, in milliseconds. An id is free again 6 s after its device lost its access at the
 * earliest (`closeAgainAfterMs`), so a message of that device is never applied to the new one.
 */
const clockSkewMs = 2_000;

/** Whether an earlier, deleted device of this id sent the message. */
function isOfEarlierDevice(takenAt: string | undefined, device: StoredDevice): boolean {
  return takenAt !== undefined && Date.parse(takenAt) < device.created_at - clockSkewMs;
}

/** A patch in which the labels are a part of the tags. */
type PlainPatch = Omit<DevicePatch, "labels">;

/** Applies changes of labels to those that a device has, or gets by the patch; nothing is written where none change. */
function withLabels({ shadow: { tags } }: StoredDevice, { labels, ...patch }: DevicePatch): PlainPatch {
  if (labels === undefined) return patch;
  const given = patch.shadow?.tags;
  // Null empties the tags: so does null for each of them.
  const written = given === null ? Object.fromEntries(Object.keys(tags).map((tag) => [tag, null])) : given;
  const before = labelsOf({ ...tags, ...written });
  const after = changedLabels(before, labels);
  if (isDeepStrictEqual(after, before)) return patch;
  return { ...patch, shadow: { ...patch.shadow, tags: { ...written, labels: after } } };
}

/** The device after the patch, at the next revision; itself when the patch writes no shadow and changes nothing. */
function changeDevice(
  device: StoredDevice,
  { shadow: write, ...members }: PlainPatch,
  timestamp: number,
): StoredDevice {
  const shadow = write && writesShadow(write) ? applyPatch(device.shadow, write, timestamp) : device.shadow;
  // No member is undefined, since a patch is parsed from JSON.
  const changed = { ...device, ...(members as Partial<DeviceDocument>), shadow };
  return shadow === device.shadow && isDeepStrictEqual(changed, device)
    ? device
    : { ...changed, revision: device.revision + 1 };
}
