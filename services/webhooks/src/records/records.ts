import type { data as contract } from "@devmesh/contracts/data";
import type { DataRecord } from "@devmesh/contracts/model/data-record";
import { recordsOf } from "@devmesh/contracts/model/record-columns";
import type { Clock } from "@devmesh/service-kit/clock";
import { isReason } from "@devmesh/service-kit/errors";
import { createLeadership, type Leadership } from "@devmesh/service-kit/leadership";
import type { Logger } from "@devmesh/service-kit/logger";
import { createCallContext } from "@devmesh/service-kit/rpc/context";
import type { Client } from "@devmesh/service-kit/rpc/implementation";
import type { SendAttempt } from "../deliveries/attempts.ts";
import type { ReadLabels } from "../deliveries/device-labels.ts";
import type { CloudEvents } from "../deliveries/message.ts";
import { pauseOf } from "../deliveries/schedule.ts";
import { changeStored } from "../store/change-stored.ts";
import type { StoredWebhook, WebhookStore } from "../store/webhook-store.ts";

/** Waits between rounds: without records, and after failures in a row; in milliseconds. */
const idleMs = 1_000;
const failureWaits = [1_000, 5_000, 30_000, 60_000];
const callMs = 10_000;
const storeMs = 5_000;
/** Bytes of the events of one request. */
const maxBatchBytes = 256 * 1024;

export interface RecordsOptions {
  readonly store: WebhookStore;
  readonly data: Pick<Client<typeof contract>, "followRecords">;
  readonly attempt: SendAttempt;
  readonly readLabels: ReadLabels;
  readonly events: CloudEvents;
  readonly onGone: (webhook: StoredWebhook) => Promise<void>;
  /** Unique among replicas and their starts. */
  readonly holder: string;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Delivers records by a cursor for each webhook, which one replica at a time moves. */
export class RecordDeliveries {
  readonly #options: RecordsOptions;
  readonly #followed = new Map<string, Follower>();
  readonly #leaving = new Map<string, Promise<void>>();
  #wanted: ReadonlySet<string> = new Set();

  constructor(options: RecordsOptions) {
    this.#options = options;
  }

  /** Follows records for these webhooks, and for no others: those end when their request under way has ended. */
  followFor(ids: ReadonlySet<string>): void {
    this.#wanted = ids;
    for (const [id, follower] of this.#followed)
      if (!ids.has(id) && !this.#leaving.has(id)) this.#leaving.set(id, this.#leave(id, follower));
    this.#begin();
  }

  async stop(): Promise<void> {
    this.followFor(new Set());
    await Promise.all(this.#leaving.values());
  }

  #begin(): void {
    for (const id of this.#wanted)
      if (!this.#followed.has(id)) this.#followed.set(id, new Follower(id, this.#options));
  }

  /** One that is asked for again meanwhile begins when the former has ended, since both have the same lease. */
  async #leave(id: string, follower: Follower): Promise<void> {
    await follower.stop();
    this.#followed.delete(id);
    this.#leaving.delete(id);
    this.#begin();
  }
}

/** The records of one webhook. */
class Follower {
  readonly #id: string;
  readonly #options: RecordsOptions;
  readonly #stopping = new AbortController();
  readonly #leadership: Leadership;
  readonly #ended: Promise<void>;
  #failures = 0;
  /** When a batch that is not full was first seen, on the monotonic clock. */
  #seenAtMs: number | null = null;

  constructor(id: string, options: RecordsOptions) {
    this.#id = id;
    this.#options = options;
    const { store, holder, clock, log } = options;
    const { signal } = this.#stopping;
    this.#leadership = createLeadership({
      leases: store.leases,
      name: id,
      holder,
      onLead: () => undefined,
      clock,
      log,
      signal,
    });
    this.#ended = this.#work();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#ended;
    await this.#leadership.stop();
  }

  async #work(): Promise<void> {
    const { clock, log } = this.#options;
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      const waitMs = this.#leadership.leads
        ? await this.#round().catch((err: unknown) => {
            log.warn({ err, webhook: this.#id }, "records could not be read and are tried again");
            return failureWaits[1] ?? idleMs;
          })
        : idleMs;
      if (waitMs > 0) await clock.sleep(waitMs, signal).catch(() => undefined);
    }
  }

  /** Sends one batch; returns the wait before the next round. */
  async #round(): Promise<number> {
    const { store, attempt, onGone, clock } = this.#options;
    const webhook = await store.find(this.#id, AbortSignal.timeout(storeMs));
    if (webhook === null || webhook.disabled_because !== null) return idleMs;
    const { records, next, caughtUp } = await this.#read(webhook);
    const wanted = await this.#ofAskedDevices(webhook, records);
    const { batch, wait_ms } = webhook.records;
    if (wanted.length === 0) {
      this.#seenAtMs = null;
      if (next !== webhook.position || webhook.batch !== null) await this.#move(webhook, next);
      return caughtUp ? idleMs : 0;
    }
    if (webhook.batch === null) {
      this.#seenAtMs ??= clock.monotonicMs();
      const leftMs = wait_ms - (clock.monotonicMs() - this.#seenAtMs);
      if (caughtUp && records.length < batch && leftMs > 0) return Math.min(leftMs, idleMs);
      // Stored before the first attempt, so that a repetition has the same records under the same id.
      const kept = await this.#change(webhook, (row) => ({ ...row, batch: { count: records.length } }));
      if (!kept) return 0;
    }
    this.#seenAtMs = null;
    const outcome = await attempt(webhook, this.#bodyOf(wanted, batch));
    if (outcome.error === null) {
      this.#failures = 0;
      await this.#move(webhook, next);
      return 0;
    }
    if (outcome.status === 410) {
      await onGone(webhook);
      return idleMs;
    }
    const wait = failureWaits[Math.min(this.#failures++, failureWaits.length - 1)] ?? idleMs;
    return Math.max(wait, pauseOf(outcome) ?? 0);
  }

  /** The records after the cursor; those of a batch that was sent are the same. */
  async #read(webhook: StoredWebhook) {
    const { position, devices, records, batch } = webhook;
    const { data, clock } = this.#options;
    const limit = batch?.count ?? records.batch;
    using call = createCallContext({ timeoutMs: callMs, clock });
    const asked = { after: position, limit, ...(devices !== null && { device_ids: [...devices] }) };
    const page = await data.followRecords(asked, call).catch((error: unknown) => {
      // A store of records that was restored: what is stored from now on is delivered.
      if (!isReason(error, "cursor_invalid")) throw error;
      return data.followRecords({ ...asked, after: null }, call);
    });
    let bytes = 0;
    const found = recordsOf(page.records);
    const fitting = found.filter((record, at) => {
      bytes += Buffer.byteLength(JSON.stringify(record)) + eventBytes;
      return at === 0 || bytes <= maxBatchBytes;
    });
    const last = fitting.at(-1);
    const isCut = last !== undefined && fitting.length < found.length;
    return {
      records: fitting,
      next: isCut ? String(last.id) : page.next,
      caughtUp: page.caught_up_at !== null && !isCut,
    };
  }

  async #ofAskedDevices({ labels }: StoredWebhook, records: readonly DataRecord[]): Promise<DataRecord[]> {
    if (labels === null) return [...records];
    const wanted: DataRecord[] = [];
    for (const record of records) {
      const own = await this.#options.readLabels(record.device_id);
      if (own.some((label) => labels.includes(label))) wanted.push(record);
    }
    return wanted;
  }

  #bodyOf(records: readonly DataRecord[], batch: number) {
    const events = records.map((record) => this.#options.events.ofRecord(record));
    const [first] = events;
    if (batch === 1 && first !== undefined) {
      const contentType = "application/cloudevents+json; charset=utf-8";
      return { id: first.id, contentType, body: JSON.stringify(first) };
    }
    const id = `rec-${records[0]?.id}-${records.at(-1)?.id}`;
    const contentType = "application/cloudevents-batch+json; charset=utf-8";
    return { id, contentType, body: JSON.stringify(events) };
  }

  async #move(webhook: StoredWebhook, position: string): Promise<void> {
    await this.#change(webhook, (row) => ({ ...row, position, batch: null }));
  }

  /** Changes the row unless another replica has moved the cursor or another edition asks for other records. */
  async #change(seen: StoredWebhook, change: (row: StoredWebhook) => StoredWebhook): Promise<boolean> {
    const isSame = (row: StoredWebhook) => row.position === seen.position && row.edition === seen.edition;
    const changed = await changeStored(
      this.#options.store,
      this.#id,
      (row) => (isSame(row) ? change(row) : null),
      AbortSignal.timeout(storeMs),
    );
    return changed !== null;
  }
}

/** Bytes of an event around its record. */
const eventBytes = 400;
