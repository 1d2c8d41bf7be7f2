import type { MeshChange } from "@devmesh/contracts/model/mesh-change";
import type { ChangeOperation } from "@devmesh/contracts/rest/api";
import { countText } from "../../components/number-text.ts";
import { shortId } from "../../components/short-id.ts";

const deeds: Readonly<Record<ChangeOperation, string>> = {
  createDevice: "Created device",
  patchDevice: "Changed device",
  deleteDevice: "Deleted device",
  rotateToken: "Replaced the token of device",
  rotatePublicKey: "Replaced the public key of device",
  patchAppDevice: "Changed the app state of device",
  patchOwnDevice: "Changed the shadow of device",
  createView: "Saved view",
  patchView: "Changed view",
  deleteView: "Deleted view",
  createBoard: "Created board",
  patchBoard: "Changed board",
  deleteBoard: "Deleted board",
  createKey: "Created key",
  deleteKey: "Deleted key",
  updateCustomer: "Changed the metadata of customer",
  deleteCustomer: "Removed customer",
  createFirmware: "Declared firmware",
  uploadFirmware: "Uploaded firmware",
  deleteFirmware: "Deleted firmware",
  createWebhook: "Created webhook",
  patchWebhook: "Changed webhook",
  deleteWebhook: "Deleted webhook",
  rotateWebhookSecret: "Replaced the secret of webhook",
  retryDeadDelivery: "Sent again an event of webhook",
  retryDeadDeliveries: "Sent again all events of webhook",
  createRule: "Created rule",
  changeRule: "Changed rule",
  deleteRule: "Deleted rule",
  createChannel: "Created channel",
  changeChannel: "Changed channel",
  deleteChannel: "Deleted channel",
  createSilence: "Created silence",
  deleteSilence: "Ended silence",
  retryDeadMail: "Sent again mail",
};

/** What was done, up to the id of what it was done to: "Deleted device". */
export function deedOf({ operation }: Pick<MeshChange, "operation">): string {
  // A gateway of another release may list other operations.
  return deeds[operation as ChangeOperation] ?? operation;
}

/** How many changes there were, the named one being the last; empty for a single one. */
export function furtherChanges({ count }: Pick<MeshChange, "count">): string {
  return count === 1 ? "" : ` and ${countText(count - 1)} more`;
}

/** The key of a change in words, with the view that lists it. */
export function authorOf({ kind, id, name }: MeshChange["by"]): {
  readonly text: string;
  readonly href: string;
} {
  switch (kind) {
    case "master":
    case "device_key":
      return { text: name ?? `key ${shortId(id)}`, href: `/keys?filter=${id}` };
    case "public_key":
      return { text: `public key of ${id}`, href: `/devices/${id}/credentials` };
    case "customer":
      return { text: `customer ${shortId(id)}`, href: `/customers?filter=${id}` };
  }
}
