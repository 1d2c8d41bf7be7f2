import { randomInt } from "node:crypto";
import type { devices } from "@devmesh/contracts/devices";
import type { keys } from "@devmesh/contracts/keys";
import { defaultAcl } from "@devmesh/contracts/model/acl";
import { ViolationList } from "@devmesh/contracts/model/violation";
import type { Clock } from "@devmesh/service-kit/clock";
import { ServiceError } from "@devmesh/service-kit/errors";
import type { Client, Implementation } from "@devmesh/service-kit/implementation";
import type { Background } from "../background.ts";
import { newClaim, renewedClaim } from "../deletion/lease.ts";
import type { CreatingMark } from "../deletion/pending-operation.ts";
import { applyPatch, writesShadow } from "../shadow/apply-patch.ts";
import { checkSectionSizes } from "../shadow/section-size.ts";
import { emptyShadow } from "../shadow/stored-shadow.ts";
import type { DeviceStore, NewDeviceDocument, StoredDevice } from "../store/device-store.ts";
import { checkNewDevice } from "./body-check.ts";
import type { DeviceNotices } from "./device-events.ts";
import { describeDevice, type Presence } from "./device-view.ts";

/** What creating a device needs. */
export interface CreationDeps {
  readonly store: DeviceStore;
  readonly keys: Pick<Client<typeof keys>, "issueCredentials" | "revokeDevice" | "forgetDevice">;
  readonly presence: Presence;
  readonly notices: DeviceNotices;
  readonly background: Background;
  readonly clock: Clock;
}

/** Milliseconds for one attempt to undo a creation. */
const undoTimeoutMs = 10_000;

/** Creating devices, and undoing creations that did not come through. */
export interface DeviceCreation {
  readonly createDevice: Implementation<typeof devices>["createDevice"];
  /** Revokes what the keys service may have issued and removes the device; the mark must be claimed by the caller. */
  undo(id: string, mark: CreatingMark): Promise<void>;
}

/**
 * A device is stored hidden, gets its credentials, and is shown. When the process dies in between, its mark is found
 * later and the creation undone: nobody has seen the credentials.
 */
export function createDeviceCreation(deps: CreationDeps): DeviceCreation {
  const { store, keys, presence, notices, background, clock } = deps;

  async function undo(id: string, mark: CreatingMark): Promise<void> {
    await background.retry("undoing the creation of a device", undoTimeoutMs, async (call) => {
      const renewed = { ...mark, ...renewedClaim(clock) };
      if (!(await store.replaceMark(id, mark.token, renewed, call.signal))) return;
      await keys.revokeDevice({ device_id: id }, call);
      await keys.forgetDevice({ device_id: id }, call);
      await store.remove(id, mark.token, call.signal);
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

      const { id = generateId(), name = null, acl = defaultAcl } = body;
      const device: NewDeviceDocument = { id, name, acl, shadow, created_at };
      const mark: CreatingMark = { kind: "creating", ...newClaim(clock) };
      const undoLater = () => background.run("undoing the creation of a device", () => undo(id, mark));
      const outcome = await store.insert(device, mark, ctx.signal).catch((error: unknown) => {
        // It may have been stored all the same.
        undoLater();
        throw error;
      });
      if (outcome === "exists") return ctx.fail("device_exists");
      if (outcome === "being_deleted") return ctx.fail("device_being_deleted");
      try {
        const credentials = await keys.issueCredentials({ device_id: id }, ctx);
        if (!(await store.replaceMark(id, mark.token, null, ctx.signal))) {
          throw ServiceError.of("unavailable", {
            cause: new Error("the creation took too long and was undone"),
          });
        }
        const stored: StoredDevice = { ...device, revision: 1, position: "", last_seen: null };
        const described = describeDevice(stored, presence);
        await notices.created(described, ctx);
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

/** 16 characters that are told apart when read aloud; 80 bits, so that two never meet. */
function generateId(): string {
  return Array.from({ length: 16 }, () => idAlphabet[randomInt(idAlphabet.length)]).join("");
}
