import type { Clock } from "@devmesh/service-kit/clock";
import { type Metrics, metricsOn } from "@devmesh/service-kit/metrics";
import type { MailSlotStore } from "@devmesh/store/mail-slots";
import type { Encryption } from "../credentials/encryption.ts";
import { digestSecret } from "../credentials/secret.ts";

/** The sliding window over which mails are counted, in milliseconds. */
export const mailWindowMs = 60 * 60 * 1000;

interface MailRequest {
  readonly email: string;
  /** The caller's network. */
  readonly network: string;
  /** Whether a customer has confirmed the address. */
  readonly isCustomer: boolean;
}

interface MailSlot {
  /** For a mail that could not be queued. */
  giveBack(signal: AbortSignal): Promise<void>;
}

/**
 * Decides whether one more mail may be sent, or which limit keeps it back. That of the network depends on its own
 * requests alone, so the caller may see it; any other would reveal something of the address, or of other callers.
 */
export type TakeMailSlot = (
  request: MailRequest,
  signal: AbortSignal,
) => Promise<MailSlot | "network" | "hidden">;

interface MailWindow {
  /** In the metric. */
  readonly bound: string;
  readonly name: string;
  readonly limit: number;
}

interface MailAllowanceOptions {
  readonly store: MailSlotStore;
  readonly clock: Clock;
  readonly encryption: Encryption;
  readonly registry: Metrics["registry"];
  /** Mails an hour. */
  readonly limits: { readonly perAddress: number; readonly perNetwork: number; readonly total: number };
}

/** Limits the mails of an hour. */
export function createMailAllowance(options: MailAllowanceOptions): TakeMailSlot {
  const { store, clock, encryption, registry, limits } = options;
  const invitations = metricsOn(registry).counter(
    "devmesh_invitations_total",
    "Invitations asked for, by what became of them.",
    "outcome",
  );
  // Only addresses that are confirmed have the last quarter: anybody can make a customer who is not.
  const forStrangers = limits.total - Math.floor(limits.total / 4);

  return async ({ email, network, isCustomer }, signal) => {
    const now = clock.now().getTime();
    const take = async ({ bound, name, limit }: MailWindow): Promise<boolean> => {
      const isTaken = await store.take(name, limit, now - mailWindowMs, now, signal);
      if (!isTaken) invitations.inc({ outcome: `${bound}_limit` });
      return isTaken;
    };
    // Keyed, since all IPv4 addresses can be tried against a plain digest.
    const ofNetwork = `network ${encryption.authenticate(`mails of network ${network}`)}`;
    // It counts requests, not mails: else the next answer would say whether this request led to a mail.
    if (!(await take({ bound: "network", name: ofNetwork, limit: limits.perNetwork }))) return "network";
    const windows: MailWindow[] = [
      // The narrowest first: requests for one address must not use up the total.
      {
        bound: "address",
        name: `address ${Buffer.from(digestSecret(email)).toString("base64url")}`,
        limit: limits.perAddress,
      },
      // Both kinds take the same steps, so that the time does not distinguish them.
      isCustomer
        ? { bound: "customers", name: "customers", limit: limits.total }
        : { bound: "strangers", name: "strangers", limit: forStrangers },
      { bound: "total", name: "total", limit: limits.total },
    ];
    const taken: string[] = [];
    const giveBack = async (signal: AbortSignal) => {
      for (const name of taken.toReversed()) await store.giveBack(name, now, signal);
    };
    for (const window of windows) {
      if (!(await take(window))) {
        await giveBack(signal);
        return "hidden";
      }
      taken.push(window.name);
    }
    taken.unshift(ofNetwork);
    invitations.inc({ outcome: "granted" });
    return { giveBack };
  };
}
