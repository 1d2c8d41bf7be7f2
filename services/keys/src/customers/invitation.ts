import type { Encryption } from "../credentials/encryption.ts";
import type { StoredCustomer } from "../store/customer-store.ts";

/** How long a confirmation link is valid, and an unconfirmed customer kept, after the last invitation; milliseconds. */
export const invitationMs = 7 * 24 * 60 * 60 * 1000;

export function invitationEnd(customer: StoredCustomer): number {
  return customer.invited_at + invitationMs;
}

/** Whether the customer did not confirm in time: it counts as removed. */
export function isInvitationOver(customer: StoredCustomer, now: number): boolean {
  return customer.confirmed_at === null && invitationEnd(customer) <= now;
}

/** The token of a confirmation link: the customer's id and a code that only this service can make. It is not stored. */
export function confirmationOf(encryption: Encryption, customer: StoredCustomer): string {
  return `${customer.id}.${encryption.authenticate(confirmationMessage(customer.id))}`;
}

/** The customer's id of a confirmation token; null when this service did not make it. */
export function readConfirmation(encryption: Encryption, confirmation: string): string | null {
  const [id, code, ...rest] = confirmation.split(".");
  if (id === undefined || code === undefined || rest.length > 0) return null;
  return encryption.isAuthentic(confirmationMessage(id), code) ? id : null;
}

function confirmationMessage(id: string): string {
  return `confirm customer ${id}`;
}
