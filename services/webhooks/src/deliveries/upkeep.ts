import { randomUUID } from "node:crypto";
import { isJsonObject, type Json } from "@devmesh/contracts/model/json";
import type { Clock } from "@devmesh/service-kit/clock";
import type { EventOutbox, FoundConsumer } from "@devmesh/service-kit/events/event-outbox";
import type { Logger } from "@devmesh/service-kit/logger";
import { Semaphore } from "@devmesh/service-kit/semaphore";
import type { WebhooksMetrics } from "../metrics.ts";
import { changeStored } from "../store/change-stored.ts";
import type { StoredWebhook, WebhookStore } from "../store/webhook-store.ts";
import type { CloudEvents, WebhookDelivery } from "./message.ts";
import { wantedConsumer } from "./wanted-events.ts";

/** How long another replica may take to make the consumer of a webhook that begins, in milliseconds. */
const beginMs = 30_000;
const storeMs = 5_000;
/** From this share of its bytes on, the stream makes room. */
const fullShare = 0.8;

export interface UpkeepOptions {
  readonly store: WebhookStore;
  readonly outbox: EventOutbox;
  readonly events: CloudEvents;
  readonly metrics: Pick<WebhooksMetrics, "cut">;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Keeps consumers and the rows of webhooks alike, and makes room. */
export interface Upkeep {
  /** Makes the broker as the rows say. Returns the ids of webhooks that are delivered to. */
  run(signal: AbortSignal): Promise<ReadonlySet<string>>;
  /** Makes the consumer of a webhook that begins now, without a gap. */
  begin(webhook: StoredWebhook): Promise<void>;
  /** Makes the consumer of a webhook that was changed. */
  change(webhook: StoredWebhook): Promise<void>;
  /** Drops what waits for a webhook; the next that it gets is a gap that begins at a time. */
  cut(webhook: StoredWebhook, from: number, signal: AbortSignal): Promise<void>;
  /** Notes that a gap was delivered. */
  told(id: string, gap: Json): Promise<void>;
  /** The birth of the stream of events, as the last round found it. */
  readonly birth: string;
}

export function createUpkeep({ store, outbox, events, metrics, clock, log }: UpkeepOptions): Upkeep {
  let birth = "";
  /** One change of consumers at a time: one that was read earlier must not undo a later one. */
  const turns = new Semaphore({ permits: 1 });

  /**
   * The metadata of the consumer say that the gap is to be published, so that a crash between the two loses none. One
   * that another replica made meanwhile has not received the gap, and is published one as well.
   */
  async function publishGap(webhook: StoredWebhook, from: string, consumer: string): Promise<void> {
    const until = clock.now().toISOString();
    const event = events.of({ id: randomUUID(), type: "devmesh.gap", time: until, data: { from, until } });
    const delivery: WebhookDelivery = { event, format: "cloudevents" };
    for (let made = consumer; ; ) {
      await outbox.publish(webhook.id, JSON.stringify(delivery), `gap-${webhook.id}-${made}-${from}`);
      const found = await update(webhook, null);
      if (found === made) return;
      made = found;
    }
  }

  /** Makes a consumer as its row says, also where that is edited meanwhile: the last to write reads once more. */
  async function update(webhook: StoredWebhook, gapFrom: string | null): Promise<string> {
    for (let row = webhook; ; ) {
      const made = await outbox.put(wantedConsumer(row), gapFrom);
      const now = await store.find(row.id, AbortSignal.timeout(storeMs));
      if (now === null || now.edition <= row.edition) return made;
      row = now;
    }
  }

  async function match(webhook: StoredWebhook, found: FoundConsumer | undefined): Promise<void> {
    const { id, run, edition } = webhook;
    if (webhook.disabled_because !== null) {
      if (found !== undefined) await outbox.remove(id);
      return;
    }
    if (found === undefined && clock.now().getTime() - webhook.run_at < beginMs) return;
    let gapFrom = found?.gapFrom ?? null;
    let consumer = found?.createdAt ?? "";
    if (found === undefined || found.run !== run) {
      if (found !== undefined) await outbox.remove(id);
      const since = webhook.gap_from ?? webhook.last_success_at ?? webhook.created_at;
      gapFrom = new Date(since).toISOString();
      consumer = await outbox.put(wantedConsumer(webhook), gapFrom);
      log.warn({ webhook: id }, "what waited for a webhook is gone");
    } else if (found.revision < edition) {
      await update(webhook, gapFrom);
    }
    if (gapFrom !== null) await publishGap(webhook, gapFrom, consumer);
  }

  /** Matches a webhook as it is stored by then. */
  async function matchStored(id: string): Promise<void> {
    using _ = await turns.acquire();
    const webhook = await store.find(id, AbortSignal.timeout(storeMs));
    if (webhook !== null) await match(webhook, (await outbox.consumers()).get(id));
  }

  async function matchAll(signal: AbortSignal) {
    using _ = await turns.acquire();
    // A consumer that is found has a row by then: rows are stored before their consumers.
    const consumers = await outbox.consumers();
    const webhooks = await store.list(signal);
    for (const webhook of webhooks) await match(webhook, consumers.get(webhook.id));
    const known = new Set(webhooks.map(({ id }) => id));
    for (const id of consumers.keys())
      if (!known.has(id)) {
        await outbox.remove(id);
        await outbox.purgeLetters({ id });
      }
    return { webhooks, consumers };
  }

  async function cut(webhook: StoredWebhook, from: number, signal: AbortSignal): Promise<void> {
    const changed = await changeStored(
      store,
      webhook.id,
      // A gap that was not sent yet is dropped as well: the next one covers its time.
      (row) =>
        row.run === webhook.run
          ? { ...row, run: row.run + 1, run_at: 0, gap_from: Math.min(row.gap_from ?? from, from) }
          : null,
      signal,
    );
    if (changed === null) return;
    metrics.cut.inc();
    await matchStored(webhook.id);
  }

  return {
    get birth() {
      return birth;
    },
    cut,
    async told(id, gap) {
      const from = isJsonObject(gap) && Date.parse(String(gap.from));
      const cleared = (row: StoredWebhook) => (row.gap_from === from ? { ...row, gap_from: null } : null);
      await changeStored(store, id, cleared, AbortSignal.timeout(storeMs));
    },
    async begin(webhook) {
      await outbox.remove(webhook.id);
      await outbox.put(wantedConsumer(webhook), null);
    },
    change: ({ id }) => matchStored(id),

    async run(signal) {
      await outbox.ensure();
      birth = await outbox.birth();
      const { webhooks, consumers } = await matchAll(signal);
      const enabled = webhooks.filter(({ disabled_because }) => disabled_because === null);
      if ((await outbox.fill()) >= fullShare) {
        const waitingOf = ({ id }: StoredWebhook) => consumers.get(id)?.waiting ?? 0;
        const [most] = enabled.toSorted((one, other) => waitingOf(other) - waitingOf(one));
        const oldest = most && (await consumers.get(most.id)?.oldest());
        if (most) await cut(most, oldest?.getTime() ?? most.last_success_at ?? most.created_at, signal);
      }
      return new Set(enabled.map(({ id }) => id));
    },
  };
}
