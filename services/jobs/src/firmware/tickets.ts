import { createHash } from "node:crypto";
import { ticketPrefix } from "@devmesh/contracts/model/api-key";
import { firmware } from "@devmesh/contracts/rest/firmware";
import { randomSecret } from "@devmesh/service-kit/random-secret";

/**
 * A new ticket: by its URL one device downloads firmware for one attempt. It is a secret, of which the store has the
 * digest alone.
 */
export function newTicket(): string {
  return randomSecret(ticketPrefix);
}

/** SHA-256 of a ticket in hex, to find its execution by. A ticket has 190 random bits, so it needs no salt. */
export function digestOfTicket(ticket: string): string {
  return createHash("sha256").update(ticket, "utf8").digest("hex");
}

/** The URL by which a device downloads: `publicUrl` is the gateway's, with or without a slash at its end. */
export function urlOfTicket(publicUrl: string, ticket: string): string {
  return publicUrl.replace(/\/+$/, "") + firmware.downloadFirmware.path.replace(":ticket", ticket);
}
