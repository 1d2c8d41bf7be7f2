import { isJsonObject, type Json } from "@devmesh/contracts/model/json";
import type { Notification } from "@devmesh/contracts/model/notification";
import type { Clock } from "@devmesh/service-kit/clock";
import type { EventOutbox, OutboxMessage } from "@devmesh/service-kit/events/event-outbox";
import type { Logger } from "@devmesh/service-kit/logger";
import { fromWebhookHeader } from "@devmesh/service-kit/rpc/context";
import { Semaphore } from "@devmesh/service-kit/semaphore";
import type { WebhooksMetrics } from "../metrics.ts";
import type { StoredWebhook, WebhookStore } from "../store/webhook-store.ts";
import type { SendAttempt } from "./attempts.ts";
import { storeDeadLetter } from "./dead-letters.ts";
import { labelsOfDeleted, labelsOfDevice, type ReadLabels } from "./device-labels.ts";
import { Lane } from "./lane.ts";
import { asksFor, bodyOf, type CloudEvents, deviceOf, frameOfMessage, WebhookDelivery } from "./message.ts";
import { deliveryLifeMs, nextStep, pauseOf } from "./schedule.ts";

/** Requests at a time. */
const width = 200;
/** Waits before a message is delivered again that could not be tried, in milliseconds. */
const soonMs = 5_000;
const laterMs = 30_000;
const storeMs = 5_000;

export interface DeliveriesOptions {
  readonly store: Pick<WebhookStore, "find">;
  readonly outbox: EventOutbox;
  readonly attempt: SendAttempt;
  readonly readLabels: ReadLabels;
  readonly events: CloudEvents;
  /** The birth of the stream of events, as it is known now. */
  readonly birth: () => string;
  /** Disables a webhook whose receiver is gone, unless it has another URL by then. */
  readonly onGone: (webhook: StoredWebhook) => Promise<void>;
  /** Drops what waits for a webhook, since its oldest event is of that time. */
  readonly cut: (webhook: StoredWebhook, from: number) => Promise<void>;
  /** Notes that a webhook knows of a gap. */
  readonly onGapTold: (id: string, gap: Json) => Promise<void>;
  readonly metrics: Pick<WebhooksMetrics, "dead" | "delaySeconds">;
  readonly clock: Clock;
  readonly log: Logger;
}

/** What this replica delivers out of the stream, a lane for each webhook. */
export class Deliveries {
  readonly #options: DeliveriesOptions;
  readonly #lanes = new Map<string, Lane>();
  readonly #leaving = new Set<Promise<void>>();
  readonly #places = new Semaphore({ permits: width });

  constructor(options: DeliveriesOptions) {
    this.#options = options;
  }

  /** Delivers for these webhooks, and for no others: those end when their requests under way have ended. */
  deliverFor(ids: ReadonlySet<string>): void {
    for (const id of ids) this.#begin(id);
    const left = [...this.#lanes].filter(([id]) => !ids.has(id));
    for (const [id, lane] of left) {
      this.#lanes.delete(id);
      const ended = lane.stop().finally(() => this.#leaving.delete(ended));
      this.#leaving.add(ended);
    }
  }

  #begin(id: string): void {
    if (this.#lanes.has(id)) return;
    const { outbox, clock, log } = this.#options;
    const handle = (message: OutboxMessage, lane: Lane) => this.#handle(id, message, lane);
    this.#lanes.set(id, new Lane({ id, outbox, places: this.#places, handle, clock, log }));
  }

  /** Settles a message. A process that dies before has the message delivered again, under the same id. */
  async #handle(id: string, message: OutboxMessage, lane: Lane): Promise<boolean | null> {
    const { store, attempt, clock, log } = this.#options;
    try {
      // Read each time: an edit holds for whatever is sent after its answer.
      const webhook = await store.find(id, AbortSignal.timeout(storeMs));
      if (webhook === null || webhook.disabled_because !== null) {
        message.reject(laterMs);
        return null;
      }
      const waitedMs = clock.now().getTime() - message.storedAt.getTime();
      if (message.deliveries === 1 && waitedMs >= deliveryLifeMs) {
        await this.#options.cut(webhook, message.storedAt.getTime());
        return null;
      }
      const delivery = await this.#deliveryOf(webhook, message);
      if (delivery === null) {
        message.acknowledge();
        return null;
      }
      const outcome = await attempt(webhook, bodyOf(delivery));
      const number = message.deliveries;
      const step = nextStep({ outcome, number, waitedMs, random: Math.random() });
      lane.pause(pauseOf(outcome) ?? 0);
      switch (step.kind) {
        case "delivered": {
          if (delivery.event.type === "devmesh.gap") await this.#options.onGapTold(id, delivery.event.data);
          message.acknowledge();
          const delayMs = clock.now().getTime() - Date.parse(delivery.event.time);
          this.#options.metrics.delaySeconds.observe(delayMs / 1_000);
          break;
        }
        case "retry":
          message.reject(step.delayMs);
          break;
        case "gone":
          message.reject(soonMs);
          await this.#options.onGone(webhook);
          break;
        case "dead":
          await storeDeadLetter(this.#options.outbox, webhook, { delivery, outcome, message });
          this.#options.metrics.dead.inc();
          message.acknowledge();
      }
      return outcome.error !== null;
    } catch (err) {
      log.warn({ err, webhook: id }, "an event could not be handled and is tried again");
      message.reject(soonMs);
      return null;
    }
  }

  /** What to send of a message; null for what the webhook does not ask for. */
  async #deliveryOf(webhook: StoredWebhook, message: OutboxMessage): Promise<WebhookDelivery | null> {
    const { subject, payload, headers } = message;
    if (subject.startsWith("queue.")) {
      const parsed = WebhookDelivery.safeParse(JSON.parse(new TextDecoder().decode(payload)));
      return parsed.success ? parsed.data : null;
    }
    if (headers?.get(fromWebhookHeader)) return null;
    const frame = frameOfMessage(subject, payload, headers?.get("Nats-Stream-Source") ?? "");
    if (frame === null || !asksFor(webhook.events, frame.name)) return null;
    if (!(await this.#isOfAskedDevice(webhook, frame, payload))) return null;
    return { event: this.#options.events.ofFrame(frame, this.#options.birth()), format: "cloudevents" };
  }

  async #isOfAskedDevice(
    { devices, labels }: StoredWebhook,
    frame: Notification,
    payload: Uint8Array,
  ): Promise<boolean> {
    const device = deviceOf(frame);
    if (device === null) return true;
    if (devices?.includes(device) === false) return false;
    if (labels === null) return true;
    const own = await this.#labelsOf(device, frame, payload);
    return own === null || own.some((label) => labels.includes(label));
  }

  /** The labels of the device of a frame; null where nobody knows them any more. */
  async #labelsOf(
    device: string,
    { name, data }: Notification,
    payload: Uint8Array,
  ): Promise<readonly string[] | null> {
    if (name === "deleted") return labelsOfDeleted(payload);
    const isShown = (name === "created" || name === "updated") && isJsonObject(data);
    return isShown ? labelsOfDevice(data) : await this.#options.readLabels(device);
  }

  async stop(): Promise<void> {
    this.deliverFor(new Set());
    await Promise.all(this.#leaving);
  }
}
