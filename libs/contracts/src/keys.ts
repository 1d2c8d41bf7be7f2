import { z } from "zod";
import {
  cursor_invalid,
  defineContract,
  defineEvent,
  defineEvents,
  defineLiveEvent,
  device_not_found,
  done,
  doneIfRepeated,
  idempotent,
  notIdempotent,
  ofPage,
  pageOf,
} from "./contract.ts";
import { ApiKey, ApiKeyInput } from "./model/api-key.ts";
import { Customer, ListedCustomer } from "./model/customer.ts";
import { DeviceCredentials } from "./model/device.ts";
import { DeviceId } from "./model/device-id.ts";
import { DiagnosisReports } from "./model/diagnostics.ts";
import { EmailAddress } from "./model/email-address.ts";
import { JsonObject } from "./model/json.ts";
import { customerChanges, keyChanges } from "./model/notification.ts";
import { CreatedSession, Session, SessionInput } from "./model/session.ts";
import { Timestamp } from "./model/time.ts";
import { Violation } from "./model/violation.ts";
import { Principal } from "./principal.ts";

/** A key that does not work, or does not work any more. */
export const key_invalid = {
  code: "unauthenticated",
  when: "The key is unknown, revoked or expired.",
} as const;
const customer_not_found = { code: "not_found", when: "There is no such customer." } as const;
const ofDevice = z.object({ device_id: DeviceId });
const ofCustomer = z.object({ customer_id: z.string() });
const counted = z.object({ count: z.int().min(0) });
const page = z.object(ofPage);

/**
 * Most client ids remembered of one device. Beyond it, those that the broker made up go first, then the least recently
 * seen.
 */
export const maxKnownClientIds = 300;

/** Longest life of a device's login, in milliseconds; the broker then closes the connection. */
export const maxLoginMs = 24 * 60 * 60 * 1000;

/** Every secret of the account: API keys, device tokens and public keys, customers and their keys. */
export const keys = defineContract({
  service: "keys",
  version: 1,
  methods: {
    /** The principal of a secret other than a session's. `revoked` events name `key_id`. */
    verify: {
      ...idempotent,
      deadlineMs: 3_000,
      in: z.object({ key: z.string() }),
      out: z.object({
        key_id: z.string(),
        principal: Principal,
        expires_at: Timestamp.nullable(),
        /** What people call the key; absent where it has none. */
        name: z.string().optional(),
      }),
      errors: { key_invalid },
    },
    /** The session of a secret. `revoked` events name `id`. */
    verifySession: {
      ...idempotent,
      deadlineMs: 3_000,
      in: z.object({ key: z.string() }),
      out: Session.pick({ id: true, master_key_id: true, expires_at: true }).extend({
        /** What people call the master key. */
        master_key_name: z.string().nullable(),
      }),
      errors: { key_invalid },
    },
    /** Master and device keys, oldest first, nothing else. */
    listKeys: { ...idempotent, in: page, out: pageOf(ApiKey), errors: { cursor_invalid } },
    /** As `listKeys`, with `key` null in each. */
    listKeysWithoutSecrets: { ...idempotent, in: page, out: pageOf(ApiKey), errors: { cursor_invalid } },
    /** How many keys and customers the lists have, all pages together. */
    countKeys: { ...idempotent, in: z.object({}), out: counted },
    countCustomers: { ...idempotent, in: z.object({}), out: counted },
    createKey: {
      ...notIdempotent,
      in: ApiKeyInput,
      out: ApiKey,
      errors: {
        device_not_found,
        key_contradictory: {
          code: "invalid_argument",
          when: "`access` and `device_id` contradict each other.",
        },
        expiry_past: {
          code: "invalid_argument",
          when: "`expires_at` is in the past.",
          details: z.array(Violation),
        },
      },
    },
    deleteKey: {
      ...idempotent,
      in: z.object({ id: z.string() }),
      out: done,
      errors: {
        key_not_found: doneIfRepeated({ code: "not_found", when: "There is no key of that id." }),
        last_master_key: {
          code: "conflict",
          when: "The last master key that is still valid cannot be deleted.",
        },
      },
    },
    /** Begins a session of a master key. Beyond `maxSessions` the one that was not used for longest ends. */
    createSession: {
      ...notIdempotent,
      in: SessionInput.extend({ master_key_id: z.string() }),
      out: CreatedSession,
      errors: { key_invalid },
    },
    /** Sessions that have not ended, oldest first; `maxSessions` or a few more. */
    listSessions: { ...idempotent, in: z.object({}), out: z.array(Session) },
    endSession: {
      ...idempotent,
      in: z.object({ id: z.string() }),
      out: done,
      errors: {
        session_not_found: doneIfRepeated({ code: "not_found", when: "There is no session of that id." }),
      },
    },
    /** Makes token and public key of a new device; where a creation was cut off, answers those already made. */
    issueCredentials: {
      ...idempotent,
      in: ofDevice,
      out: DeviceCredentials,
      errors: {
        credentials_revoked: {
          code: "conflict",
          when: "Credentials of that device id were revoked and are not forgotten yet.",
        },
      },
    },
    readCredentials: { ...idempotent, in: ofDevice, out: DeviceCredentials, errors: { device_not_found } },
    rotateToken: {
      ...notIdempotent,
      in: ofDevice,
      out: DeviceCredentials.pick({ token: true }),
      errors: { device_not_found },
    },
    rotatePublicKey: {
      ...notIdempotent,
      in: ofDevice,
      out: DeviceCredentials.pick({ public_key: true }),
      errors: { device_not_found },
    },
    /**
     * Ends token, public key and device keys of a device. Returns its last {@link maxKnownClientIds} MQTT client ids.
     */
    revokeDevice: { ...idempotent, in: ofDevice, out: z.object({ client_ids: z.array(z.string()) }) },
    /** Drops what `revokeDevice` kept; the id may be issued again. */
    forgetDevice: { ...idempotent, in: ofDevice, out: done },
    /** Stores a new customer and queues the mail. The result is the same for each address, known or not. */
    invite: {
      ...notIdempotent,
      deadlineMs: 10_000,
      in: z.object({
        email: EmailAddress,
        /** What the caller's share of the mails is counted on. */
        network: z.string().min(1).max(64).optional(),
      }),
      out: done,
      errors: {
        too_many_invitations: {
          code: "resource_exhausted",
          when: "As many invitations as one network may ask for within an hour were asked for from yours; try again in an hour, or from another network.",
        },
      },
    },
    /** Content of an invitation. The mailer reads it when it sends, so that no queue holds a secret. */
    readInvitation: {
      ...idempotent,
      in: ofCustomer,
      out: z.object({
        email: z.string(),
        token: z.string(),
        confirmation: z.string(),
        expires_at: Timestamp,
      }),
      errors: { customer_not_found },
    },
    /** Sets `confirmed_at`; doing it twice is harmless. */
    confirmCustomer: {
      ...idempotent,
      in: z.object({ confirmation: z.string() }),
      out: z.object({ email: z.string() }),
      errors: {
        confirmation_invalid: { code: "not_found", when: "The confirmation link is unknown or has expired." },
      },
    },
    readCustomer: { ...idempotent, in: ofCustomer, out: Customer, errors: { customer_not_found } },
    /** Takes the whole object posted back: `meta` is replaced, other members must be unchanged. */
    updateCustomer: {
      ...idempotent,
      in: z.object({ customer_id: z.string(), body: JsonObject }),
      out: Customer,
      errors: {
        customer_not_found,
        customer_read_only: {
          code: "invalid_argument",
          when: "A member other than `meta` was changed or is unknown, or `meta` is no object or nested too deep.",
          details: z.array(Violation),
        },
        meta_too_large: { code: "invalid_argument", when: "`meta` exceeds 16 KB." },
      },
    },
    listCustomers: { ...idempotent, in: page, out: pageOf(ListedCustomer), errors: { cursor_invalid } },
    deleteCustomer: {
      ...idempotent,
      in: ofCustomer,
      out: done,
      errors: { customer_not_found: doneIfRepeated(customer_not_found) },
    },
  },
});

const about = { id: z.string(), timestamp: Timestamp };

/** What happened to keys and customers; ids only, never a secret. */
export const keyEvents = defineEvents({
  service: "keys",
  events: {
    /** Ids of keys that are no longer valid. */
    revoked: defineEvent(z.object({ key_ids: z.array(z.string()) }), () => "all"),
    /** A master key, device key or session was made or deleted. Best effort, as the next one. */
    key_changed: defineEvent(z.object({ ...about, change: z.enum(keyChanges) }), (event) => event.id),
    customer_changed: defineEvent(
      z.object({ ...about, change: z.enum(customerChanges) }),
      (event) => event.id,
    ),
    /** Refused logins. */
    diagnostics: defineLiveEvent(DiagnosisReports, () => "all"),
  },
});
