import type { Clock } from "@devmesh/service-kit/clock";
import { Counter, type Metrics } from "@devmesh/service-kit/metrics";
import { digestSecret } from "../api-keys/secret.ts";
import type { Sealer } from "../store/encryption.ts";
import type { MailSlotStore } from "./mail-slot-store.ts";

/** The window over which mails are counted, in milliseconds. It slides: any hour counts, not the hours of the clock. */
export const mailWindowMs = 60 * 60 * 1000;

/** How many mails an hour may leave. */
interface MailLimits {
  readonly perAddress: number;
  readonly perNetwork: number;
  readonly total: number;
}

/** A mail that is asked for. */
interface MailRequest {
  readonly email: string;
  /** Where the caller is. */
  readonly network: string;
  /** Whether a customer has confirmed the address. */
  readonly isCustomer: boolean;
}

/** A mail that may be sent. */
interface MailSlot {
  /** Gives it back when the mail could not even be queued. */
  giveBack(signal: AbortSignal): Promise<void>;
}

/** Decides whether one more mail may be sent; null when not. */
export type TakeMailSlot = (request: MailRequest, signal: AbortSignal) => Promise<MailSlot | null>;

interface MailAllowanceOptions {
  readonly store: MailSlotStore;
  readonly clock: Clock;
  readonly sealer: Sealer;
  readonly registry: Metrics["registry"];
  readonly limits: MailLimits;
}

/** Counts in the store, so that a restart opens no second allowance. */
export function createMailAllowance(options: MailAllowanceOptions): TakeMailSlot {
  const { store, clock, sealer, registry, limits } = options;
  const invitations = new Counter({
    name: "devmesh_invitations_total",
    help: "Invitations asked for, by what became of them.",
    labelNames: ["outcome"],
    registers: [registry],
  });
  // Only addresses that are confirmed have the last quarter: anybody can make a customer who is not.
  const forStrangers = limits.total - Math.floor(limits.total / 4);

  return async ({ email, network, isCustomer }, signal) => {
    const now = clock.now().getTime();
    const windows = [
      // The narrowest first: whoever hammers one address must not use up what is there for all.
      {
        bound: "address",
        name: `address ${Buffer.from(digestSecret(email)).toString("base64url")}`,
        limit: limits.perAddress,
      },
      // Keyed, since a plain digest of an IPv4 address is undone by trying all of them.
      {
        bound: "network",
        name: `network ${sealer.authenticate(`mails of network ${network}`)}`,
        limit: limits.perNetwork,
      },
      // One of two kinds, so that neither takes more steps.
      isCustomer
        ? { bound: "customers", name: "customers", limit: limits.total }
        : { bound: "strangers", name: "strangers", limit: forStrangers },
      { bound: "total", name: "total", limit: limits.total },
    ];
    const taken: string[] = [];
    const giveBack = async (signal: AbortSignal) => {
      for (const name of taken.toReversed()) await store.giveBack(name, now, signal);
    };
    for (const { bound, name, limit } of windows) {
      if (!(await store.take(name, limit, now - mailWindowMs, now, signal))) {
        await giveBack(signal);
        invitations.inc({ outcome: `${bound}_limit` });
        return null;
      }
      taken.push(name);
    }
    invitations.inc({ outcome: "granted" });
    return { giveBack };
  };
}
