import { randomInt } from "node:crypto";
import type { devices } from "@devmesh/contracts/devices";
import type { keys } from "@devmesh/contracts/keys";
import { defaultAcl } from "@devmesh/contracts/model/acl";
import { ViolationList } from "@devmesh/contracts/model/violation";
import type { Clock } from "@devmesh/service-kit/clock";
import { ServiceError } from "@devmesh/service-kit/errors";
import type { Client, Implementation } from "@devmesh/service-kit/rpc/implementation";
import type { Background } from "../background.ts";
import type { DeviceEventPublisher } from "../device-events.ts";
import type { PendingCreation } from "../pending-operation.ts";
import type { Presence } from "../presence.ts";
import { checkNewDevice } from "../registry/body-check.ts";
import { describeDevice } from "../registry/device-view.ts";
import { applyPatch, checkSectionSizes, writesShadow } from "../shadow/apply-patch.ts";
import { emptyShadow } from "../shadow/stored-shadow.ts";
import type { DeviceStore, NewDeviceDocument, StoredDevice } from "../store/device-store.ts";
import { newLease, renewedLease } from "./lease.ts";

/** Milliseconds for one attempt to undo a creation. */
const undoTimeoutMs = 10_000;

/** Options of the creation of devices. */
export interface DeviceCreationOptions {
  readonly store: Pick<DeviceStore, "insert" | "replaceOperation" | "remove">;
  readonly keys: Pick<Client<typeof keys>, "issueCredentials" | "revokeDevice" | "forgetDevice">;
  readonly presence: Presence;
  readonly events: Pick<DeviceEventPublisher, "created">;
  readonly background: Background;
  readonly clock: Clock;
}

/** Creates devices, and undoes creations that failed. */
export interface DeviceCreation {
  readonly createDevice: Implementation<typeof devices>["createDevice"];
  /** Revokes what `keys` may have issued and removes the device; the caller holds the lease. */
  undo(id: string, operation: PendingCreation): Promise<void>;
}

/**
 * A device is stored hidden, gets its credentials, and becomes visible. If the process dies in between, recovery undoes
 * the creation: nobody has seen the credentials.
 */
export function createDeviceCreation(options: DeviceCreationOptions): DeviceCreation {
  const { store, keys, presence, events, background, clock } = options;

  async function undo(id: string, operation: PendingCreation): Promise<void> {
    await background.retry("undoing the creation of a device", undoTimeoutMs, async (call) => {
      const renewed = { ...operation, ...renewedLease(clock) };
      if (!(await store.replaceOperation(id, operation.token, renewed, call.signal))) return;
      await keys.revokeDevice({ device_id: id }, call);
      await keys.forgetDevice({ device_id: id }, call);
      await store.remove(id, operation.token, call.signal);
    });
  }

  return {
    async createDevice(body, ctx) {
      const wrong = checkNewDevice(body);
      if (wrong.any) return ctx.fail("invalid_device", wrong.list);
      const created_at = clock.now().getTime();
      const empty = emptyShadow(created_at);
      const shadow =
        body.shadow && writesShadow(body.shadow) ? applyPatch(empty, body.shadow, created_at) : empty;
      const oversized = new ViolationList();
      checkSectionSizes(shadow, body.shadow ?? {}, oversized);
      if (oversized.any) return ctx.fail("shadow_too_large", oversized.list);

      const { id = generateId(), name = null, acl = defaultAcl, delta_metadata = true } = body;
      const device: NewDeviceDocument = { id, name, acl, delta_metadata, shadow, created_at };
      const operation: PendingCreation = { kind: "creating", ...newLease(clock) };
      const undoLater = () => background.run("undoing the creation of a device", () => undo(id, operation));
      const outcome = await store.insert(device, operation, ctx.signal).catch((error: unknown) => {
        // The device may be stored nevertheless.
        undoLater();
        throw error;
      });
      if (outcome === "exists") return ctx.fail("device_exists");
      if (outcome === "being_deleted") return ctx.fail("device_being_deleted");
      try {
        const credentials = await keys.issueCredentials({ device_id: id }, ctx);
        if (!(await store.replaceOperation(id, operation.token, null, ctx.signal))) {
          throw ServiceError.of("unavailable", {
            cause: new Error("the creation took too long and was undone"),
          });
        }
        const stored: StoredDevice = { ...device, revision: 1, position: "", last_seen: null };
        const described = describeDevice(stored, presence);
        await events.created(described, ctx);
        return { ...described, ...credentials };
      } catch (error) {
        undoLater();
        throw error;
      }
    },
    undo,
  };
}

const idAlphabet = "abcdefghijkmnpqrstuvwxyz23456789";

/** 16 characters that are easy to read aloud; 80 bits, so that ids never collide. */
function generateId(): string {
  return Array.from({ length: 16 }, () => idAlphabet[randomInt(idAlphabet.length)]).join("");
}
