import { randomUUID } from "node:crypto";
import { secretWord } from "@devmesh/contracts/model/api-key";
import { isRedactedUrl, redactUrl, type Webhook, webhookLimits } from "@devmesh/contracts/model/webhook";
import type { webhookEvents, webhooks } from "@devmesh/contracts/webhooks";
import type { Clock } from "@devmesh/service-kit/clock";
import { definedMembers } from "@devmesh/service-kit/defined-members";
import type { EventOutbox } from "@devmesh/service-kit/events/event-outbox";
import type { Publisher } from "@devmesh/service-kit/events/publisher";
import type { CallContext } from "@devmesh/service-kit/rpc/context";
import type { Implementation } from "@devmesh/service-kit/rpc/implementation";
import { cutPage } from "@devmesh/service-kit/rpc/page";
import type { SignedSend } from "./deliveries/attempts.ts";
import { describeDeadLetter, retryDeadLetter } from "./deliveries/dead-letters.ts";
import { bodyOf, type CloudEvents, type WebhookDelivery } from "./deliveries/message.ts";
import type { Upkeep } from "./deliveries/upkeep.ts";
import { describeWebhook } from "./describe-webhook.ts";
import { AddressRefused, type Guard, placeOf } from "./requests/guard.ts";
import type { Secrets } from "./requests/signature.ts";
import { changeStored } from "./store/change-stored.ts";
import type { StoredWebhook, WebhookStore } from "./store/webhook-store.ts";

/** Dead letters of one page, and the time in which they are queued again, in milliseconds. */
const deadPageSize = 100;
const retryMs = 20_000;

export interface WebhooksOptions {
  readonly store: WebhookStore;
  readonly outbox: EventOutbox;
  readonly upkeep: Pick<Upkeep, "begin" | "change">;
  readonly guard: Guard;
  readonly secrets: Secrets;
  /** Sends a request that counts for nothing. */
  readonly send: SignedSend;
  readonly events: CloudEvents;
  /** The cursor after the records that are stored now; null where `data` does not answer. */
  readonly endOfRecords: (call: CallContext) => Promise<string | null>;
  readonly publisher: Publisher<typeof webhookEvents>;
  /** Whether secrets are shown after they were made (`KEYS_REVEAL`). */
  readonly reveal: boolean;
  /** Runs after webhooks were created, changed or deleted: this replica delivers accordingly. */
  readonly onChanged: () => void;
  readonly newId: () => string;
  readonly clock: Clock;
}

/** The use cases of the contract. */
export function createWebhooks(options: WebhooksOptions): Implementation<typeof webhooks> {
  const { store, outbox, upkeep, guard, secrets, send, events, endOfRecords, publisher, clock, onChanged } =
    options;

  const consumers = () => outbox.consumers().catch(() => null);
  const describe = async (webhook: StoredWebhook): Promise<Webhook> =>
    await describeWebhook(webhook, outbox, await consumers());

  async function changed(
    id: string,
    change: "created" | "updated" | "deleted",
    call: CallContext,
  ): Promise<void> {
    onChanged();
    await publisher.webhook_changed({ id, timestamp: clock.now().toISOString(), change }, { call });
  }

  return {
    async createWebhook({ url, events: names, name, devices, labels, records }, ctx) {
      const refusal = await refusalOf(guard, url);
      if (refusal !== null) return ctx.fail("url_refused", [{ pointer: "/url", detail: refusal }]);
      const now = clock.now().getTime();
      const webhook: StoredWebhook = {
        id: `wh_${options.newId()}`,
        name: name ?? null,
        url,
        events: names,
        devices: devices ?? null,
        labels: labels ?? null,
        records: records ?? { batch: 1, wait_ms: 0 },
        disabled_because: null,
        revision: 1,
        created_at: now,
        run: 1,
        run_at: now,
        gap_from: null,
        edition: 1,
        generation: 1,
        generation_at: now,
        failing_since: null,
        failed_attempts: 0,
        last_success_at: null,
        last_failure: null,
        position: names.includes("data") ? await endOfRecords(ctx) : null,
        batch: null,
      };
      if (!(await store.insert(webhook, webhookLimits.webhooks, ctx.signal)))
        return ctx.fail("too_many_webhooks");
      // Without its consumer a later round makes it, and begins with a gap.
      await upkeep.begin(webhook);
      await changed(webhook.id, "created", ctx);
      return { ...(await describe(webhook)), secret: secrets.secretOf(webhook) };
    },

    async listWebhooks({ after, limit = webhookLimits.webhooks }, ctx) {
      if (after !== undefined && !after.startsWith("wh_")) return ctx.fail("cursor_invalid");
      const all = await store.list(ctx.signal);
      const wanted = all.filter(({ id }) => after === undefined || id > after).slice(0, limit + 1);
      const found = await consumers();
      const described = await Promise.all(wanted.map((webhook) => describeWebhook(webhook, outbox, found)));
      return cutPage(described, { limit, cursorOf: ({ id }) => id });
    },

    async readWebhook({ id }, ctx) {
      return await describe((await store.find(id, ctx.signal)) ?? ctx.fail("webhook_not_found"));
    },

    async patchWebhook({ id, patch }, ctx) {
      const { enabled, ...given } = patch;
      const before = (await store.find(id, ctx.signal)) ?? ctx.fail("webhook_not_found");
      // A session that writes back what it has read changes no URL.
      const members = { ...given, url: given.url === redactUrl(before.url) ? undefined : given.url };
      if (members.url !== undefined) {
        const refusal = await refusalOf(guard, members.url);
        if (refusal !== null) return ctx.fail("url_refused", [{ pointer: "/url", detail: refusal }]);
      }
      const mayFollow = enabled === true || members.events?.includes("data") === true;
      const end = mayFollow ? await endOfRecords(ctx) : null;
      let begins = false;
      const webhook = await changeStored(
        store,
        id,
        (row) => {
          begins = enabled === true && row.disabled_because !== null;
          return patched(row, members, { enabled, end, now: clock.now().getTime() });
        },
        ctx.signal,
      );
      if (webhook === null) return ctx.fail("webhook_not_found");
      await (begins ? upkeep.begin(webhook) : upkeep.change(webhook));
      await changed(id, "updated", ctx);
      return await describe(webhook);
    },

    async deleteWebhook({ id }, ctx) {
      if (!(await store.remove(id, ctx.signal))) return ctx.fail("webhook_not_found");
      // After a crash here a later round removes what has no row.
      await outbox.remove(id);
      await outbox.purgeLetters({ id });
      await changed(id, "deleted", ctx);
      return {};
    },

    async readSecret({ id }, ctx) {
      const webhook = (await store.find(id, ctx.signal)) ?? ctx.fail("webhook_not_found");
      if (!options.reveal) return ctx.fail("secret_not_shown");
      return { secret: secrets.secretOf(webhook) };
    },

    async rotateSecret({ id }, ctx) {
      const now = clock.now().getTime();
      const found = (await store.find(id, ctx.signal)) ?? ctx.fail("webhook_not_found");
      const webhook = await changeStored(
        store,
        id,
        (row) =>
          secrets.signsTwice(row, now) || row.generation !== found.generation
            ? null
            : { ...row, generation: row.generation + 1, generation_at: now },
        ctx.signal,
      );
      if (webhook === null) return ctx.fail("secret_rotated_recently");
      await changed(id, "updated", ctx);
      return { secret: secrets.secretOf(webhook) };
    },

    async testWebhook({ id }, ctx) {
      const webhook = (await store.find(id, ctx.signal)) ?? ctx.fail("webhook_not_found");
      const time = clock.now().toISOString();
      const event = events.of({ id: randomUUID(), type: "devmesh.test", time, data: {} });
      const begun = clock.monotonicMs();
      const { status, error } = await send(webhook, bodyOf({ event, format: "cloudevents" }), ctx.signal);
      return { status, error, duration_ms: Math.round(clock.monotonicMs() - begun) };
    },

    async listDeadDeliveries({ id, after = "0", limit = deadPageSize }, ctx) {
      const from = parseSequence(after) ?? ctx.fail("cursor_invalid");
      if ((await store.find(id, ctx.signal)) === null) return ctx.fail("webhook_not_found");
      const most = Math.min(limit, deadPageSize);
      const found = [];
      for (let letter = await outbox.nextLetter(id, from); letter !== null; ) {
        const described = describeDeadLetter(letter);
        if (described !== null) found.push(described);
        if (found.length > most) break;
        letter = await outbox.nextLetter(id, letter.sequence);
      }
      return cutPage(found, { limit: most, cursorOf: (one) => one.id });
    },

    async retryDeadDeliveries({ id, dead }, ctx) {
      await findEnabled(id, ctx);
      if (dead !== undefined) {
        const sequence = parseSequence(dead);
        const letter = sequence ? await outbox.nextLetter(id, sequence - 1) : null;
        if (letter === null || letter.sequence !== sequence) return ctx.fail("dead_letter_not_found");
        await retryDeadLetter(outbox, id, letter);
        return { queued: 1 };
      }
      const until = clock.monotonicMs() + retryMs;
      let queued = 0;
      let letter = await outbox.nextLetter(id, 0);
      for (; letter !== null && clock.monotonicMs() < until; queued++) {
        await retryDeadLetter(outbox, id, letter);
        letter = await outbox.nextLetter(id, letter.sequence);
      }
      return { queued };
    },

    async deliver({ webhook_id: id, format, event, text }, ctx) {
      await findEnabled(id, ctx);
      const delivery: WebhookDelivery = { event: events.of(event), format, text };
      await outbox.publish(id, JSON.stringify(delivery), `deliver-${id}-${event.id}`);
      return {};
    },

    async purgeDevice({ device_id }) {
      await outbox.purgeLetters({ about: device_id });
      return {};
    },

    async readBacklog(_input, ctx) {
      const found = (await consumers()) ?? ctx.fail("backlog_unknown");
      return { waiting: Math.max(0, ...[...found.values()].map(({ waiting }) => waiting)) };
    },
  };

  async function findEnabled(
    id: string,
    ctx: {
      readonly signal: AbortSignal;
      fail(reason: "webhook_not_found" | "webhook_disabled"): never;
    },
  ): Promise<void> {
    const webhook = (await store.find(id, ctx.signal)) ?? ctx.fail("webhook_not_found");
    if (webhook.disabled_because !== null) ctx.fail("webhook_disabled");
  }
}

/** Why a URL may not be stored; null where it may. A connection is checked again. */
async function refusalOf(guard: Guard, url: string): Promise<string | null> {
  if (isRedactedUrl(url)) return "has only its beginning: leave it out to keep it, or write all of it";
  if (holdsKey(url)) return "holds a key of this mesh, which every reader of the URL could use: leave it out";
  const reason = guard.refuse(url);
  if (reason !== null) return reason;
  try {
    const parsed = new URL(url);
    const { host, port } = placeOf(parsed);
    const addresses = await guard.resolve(host, port);
    const isPlain = parsed.protocol === "http:";
    if (isPlain && !addresses.every(({ address }) => guard.isAllowedNetwork(address)))
      return "must begin with https://";
    return null;
  } catch (error) {
    return error instanceof AddressRefused ? error.message : "has a name that cannot be resolved";
  }
}

/** Whether a URL has a key in it, also with escapes. */
function holdsKey(url: string): boolean {
  const plain = url.replace(/%([0-9a-f]{2})/gi, (_, digits) =>
    String.fromCharCode(Number.parseInt(digits, 16)),
  );
  return secretWord.test(plain);
}

function parseSequence(text: string): number | null {
  return /^\d{1,15}$/.test(text) ? Number(text) : null;
}

type Members = Omit<Parameters<Implementation<typeof webhooks>["patchWebhook"]>[0]["patch"], "enabled">;

/** The webhook after a patch: one that begins again has a new run, and records after `end`. */
function patched(
  row: StoredWebhook,
  members: Members,
  {
    enabled,
    end,
    now,
  }: { readonly enabled: boolean | undefined; readonly end: string | null; readonly now: number },
): StoredWebhook {
  const given = definedMembers(members);
  // Other records are another batch; what was sent of the same ones is repeated under its id.
  const isOfOthers = ["events", "devices", "labels", "records"].some((name) => Object.hasOwn(given, name));
  const batch = isOfOthers ? null : row.batch;
  const merged = { ...row, ...given, edition: row.edition + 1, position: row.position ?? end, batch };
  if (enabled === false && row.disabled_because === null) return { ...merged, disabled_because: "by_hand" };
  if (enabled !== true || row.disabled_because === null) return merged;
  return {
    ...merged,
    disabled_because: null,
    run: row.run + 1,
    run_at: now,
    gap_from: null,
    failing_since: null,
    failed_attempts: 0,
    position: end,
    batch: null,
  };
}
