import type { keys } from "@devmesh/contracts/keys";
import type { mailQueue } from "@devmesh/contracts/mailer";
import type { Customer, ListedCustomer } from "@devmesh/contracts/model/customer";
import type { JsonObject } from "@devmesh/contracts/model/json";
import type { Clock } from "@devmesh/service-kit/clock";
import type { Producer } from "@devmesh/service-kit/queue/producer";
import type { CallContext } from "@devmesh/service-kit/rpc/context";
import type { Implementation } from "@devmesh/service-kit/rpc/implementation";
import { cutPage } from "@devmesh/service-kit/rpc/page";
import { isSortableId } from "@devmesh/service-kit/sortable-id";
import type { AccountEvents } from "../account-events.ts";
import type { Encryption } from "../credentials/encryption.ts";
import { createSecret, digestSecret } from "../credentials/secret.ts";
import type { StoredCustomer } from "../store/customer-store.ts";
import type { KeyStore } from "../store/key-store.ts";
import { readCustomerUpdate } from "./customer-update.ts";
import {
  confirmationOf,
  invitationEnd,
  invitationMs,
  isInvitationOver,
  readConfirmation,
} from "./invitation.ts";
import type { TakeMailSlot } from "./mail-allowance.ts";

const pageLimit = 500;

/** Constructor arguments of the methods of customers. */
export interface CustomersOptions {
  readonly store: Pick<KeyStore, "customers">;
  readonly encryption: Encryption;
  readonly clock: Clock;
  /** Makes ids whose text order is the order of their creation. */
  readonly newId: () => string;
  readonly mail: Producer<typeof mailQueue>;
  readonly takeMailSlot: TakeMailSlot;
  readonly events: AccountEvents;
}

/** Invites customers, confirms them and stores their data (api.md, Customers). */
export function createCustomers(
  options: CustomersOptions,
): Pick<
  Implementation<typeof keys>,
  | "invite"
  | "readInvitation"
  | "confirmCustomer"
  | "readCustomer"
  | "updateCustomer"
  | "listCustomers"
  | "countCustomers"
  | "deleteCustomer"
> {
  const { store, encryption, clock, newId, mail, takeMailSlot, events } = options;
  const now = () => clock.now().getTime();

  return {
    /**
     * A known and an unknown address take the same steps, so that neither the answer nor its time distinguishes them.
     * After a crash between store and queue the next invitation finds the customer.
     */
    async invite({ email, network = "unknown" }, context) {
      const isCustomer = await store.customers.isConfirmed(email, context.signal);
      const slot = await takeMailSlot({ email, network, isCustomer }, context.signal);
      if (slot === "network") return context.fail("too_many_invitations");
      if (slot === "hidden") return {};
      const customer = await findOrAdd(email, context);
      try {
        await mail.enqueue({ kind: "invitation", customer_id: customer.id }, { call: context });
      } catch (error) {
        await slot.giveBack(context.signal);
        throw error;
      }
      events.customerChanged(customer.id, "invited", context);
      return {};
    },

    async readInvitation({ customer_id }, context) {
      const customer = (await find(customer_id, context.signal)) ?? context.fail("customer_not_found");
      return {
        email: customer.email,
        token: openToken(customer),
        confirmation: confirmationOf(encryption, customer),
        expires_at: new Date(invitationEnd(customer)).toISOString(),
      };
    },

    async confirmCustomer({ confirmation }, context) {
      const id = readConfirmation(encryption, confirmation) ?? context.fail("confirmation_invalid");
      const customer =
        (await store.customers.find(id, context.signal)) ?? context.fail("confirmation_invalid");
      const at = now();
      if (invitationEnd(customer) <= at) return context.fail("confirmation_invalid");
      if (!(await store.customers.confirm(id, at, context.signal)))
        return context.fail("confirmation_invalid");
      events.customerChanged(id, "confirmed", context);
      return { email: customer.email };
    },

    async readCustomer({ customer_id }, context) {
      return describe((await find(customer_id, context.signal)) ?? context.fail("customer_not_found"));
    },

    async updateCustomer({ customer_id, body }, context) {
      const customer = (await find(customer_id, context.signal)) ?? context.fail("customer_not_found");
      const update = readCustomerUpdate(describe(customer), body);
      if ("violations" in update) return context.fail("customer_read_only", [...update.violations]);
      if ("tooLarge" in update) return context.fail("meta_too_large");
      const updated = await store.customers.replaceMeta(customer_id, update.meta, now(), context.signal);
      if (updated === null) return context.fail("customer_not_found");
      events.customerChanged(customer_id, "updated", context);
      return describe(updated);
    },

    async listCustomers({ after, limit = pageLimit }, context) {
      if (after !== undefined && !isSortableId(after)) return context.fail("cursor_invalid");
      const wanted = Math.min(limit, pageLimit);
      const stored = await store.customers.list(after ?? null, wanted + 1, context.signal);
      const page = cutPage(stored, {
        limit: wanted,
        cursorOf: ({ id }) => id,
        sizeOf: (customer) => Buffer.byteLength(customer.meta) + 1_024,
      });
      const at = now();
      return {
        next: page.next,
        items: page.items.filter((customer) => !isInvitationOver(customer, at)).map(describeWithoutToken),
      };
    },

    countCustomers: async (_input, { signal }) => ({
      count: await store.customers.count(now() - invitationMs, signal),
    }),

    async deleteCustomer({ customer_id }, context) {
      if (!(await store.customers.delete(customer_id, context.signal)))
        return context.fail("customer_not_found");
      const revoked = events.revoked([customer_id], context);
      events.customerChanged(customer_id, "deleted", context);
      await revoked;
      return {};
    },
  };

  async function find(id: string, signal: AbortSignal): Promise<StoredCustomer | null> {
    const customer = await store.customers.find(id, signal);
    return customer === null || isInvitationOver(customer, now()) ? null : customer;
  }

  /** Of several first invitations of an address at a time one stores the customer, the others find it. */
  async function findOrAdd(email: string, call: CallContext): Promise<StoredCustomer> {
    const { signal } = call;
    const at = now();
    const over = await store.customers.deleteUnconfirmedOf(email, at - invitationMs, signal);
    if (over !== null) events.customerChanged(over, "deleted", call);
    const id = newId();
    const token = createSecret("customer");
    const added: StoredCustomer = {
      id,
      email,
      token_digest: digestSecret(token),
      token_sealed: encryption.encrypt(token, identityOf(id)),
      meta: "{}",
      created_at: at,
      updated_at: at,
      confirmed_at: null,
      invited_at: at,
    };
    if (await store.customers.insert(added, signal)) return added;
    const known = await store.customers.recordInvitation(email, at, signal);
    // Null: deleted in between, so the address is free again.
    return known ?? (await findOrAdd(email, call));
  }

  function openToken(customer: StoredCustomer): string {
    return encryption.decrypt(customer.token_sealed, identityOf(customer.id));
  }

  function describe(customer: StoredCustomer): Customer {
    const { id, email, ...rest } = describeWithoutToken(customer);
    return { id, email, token: openToken(customer), ...rest };
  }
}

function identityOf(id: string): string {
  return `customer ${id}`;
}

function describeWithoutToken(customer: StoredCustomer): ListedCustomer {
  return {
    id: customer.id,
    email: customer.email,
    meta: JSON.parse(customer.meta) as JsonObject,
    created_at: new Date(customer.created_at).toISOString(),
    updated_at: new Date(customer.updated_at).toISOString(),
    confirmed_at: customer.confirmed_at === null ? null : new Date(customer.confirmed_at).toISOString(),
  };
}
