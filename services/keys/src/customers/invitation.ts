import type { Sealer } from "../store/encryption.ts";
import type { StoredCustomer } from "./customer-store.ts";

/** How long a confirmation link is good, and an unconfirmed customer kept, after the last invitation; milliseconds. */
export const invitationMs = 7 * 24 * 60 * 60 * 1000;

/** When the customer's invitation ends, Unix milliseconds. */
export function invitationEnd(customer: StoredCustomer): number {
  return customer.invitedAt + invitationMs;
}

/** Whether the customer never confirmed and no longer can: then it counts as removed. */
export function isInvitationOver(customer: StoredCustomer, now: number): boolean {
  return customer.confirmedAt === null && invitationEnd(customer) <= now;
}

/**
 * The token of a customer's confirmation link: its id and a code that only this service can make, so that nothing
 * need be stored. A further invitation carries the same.
 */
export function confirmationOf(sealer: Sealer, customer: StoredCustomer): string {
  return `${customer.id}.${sealer.authenticate(confirmationMessage(customer.id))}`;
}

/** Whose confirmation token it is; null when this service did not make it. */
export function readConfirmation(sealer: Sealer, confirmation: string): string | null {
  const [id, code, ...rest] = confirmation.split(".");
  if (id === undefined || code === undefined || rest.length > 0) return null;
  return sealer.isAuthentic(confirmationMessage(id), code) ? id : null;
}

function confirmationMessage(id: string): string {
  return `confirm customer ${id}`;
}
