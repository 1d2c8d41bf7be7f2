import { deviceEvents } from "@devmesh/contracts/devices";
import type { gatewayEvents } from "@devmesh/contracts/gateway";
import { mesh } from "@devmesh/contracts/mesh";
import type { DataRecord } from "@devmesh/contracts/model/data-record";
import type { Bus } from "@devmesh/service-kit/bus";
import { type Clock, withTimeout } from "@devmesh/service-kit/clock";
import { ServiceError } from "@devmesh/service-kit/errors";
import { followEvents, type StreamPosition } from "@devmesh/service-kit/events/event-stream";
import type { Publisher } from "@devmesh/service-kit/events/publisher";
import type { Logger } from "@devmesh/service-kit/logger";
import type { ConcurrencyLimit } from "../http/concurrency-limit.ts";
import { type CatchUp, createCatchUp } from "./catch-up.ts";
import { type Audience, Channel } from "./channel.ts";
import { Channels } from "./channels.ts";
import { type DeviceReader, deviceView } from "./device-view.ts";
import { Frame, gapFrame } from "./frame.ts";
import { KeyWatch } from "./key-watch.ts";
import type { Listener, ListenerPrincipal } from "./listener.ts";
import type { NotificationMetrics } from "./notification-metrics.ts";
import { RecordSubscription } from "./record-subscription.ts";
import { ReplayBuffer } from "./replay-buffer.ts";
import type { CloseReason } from "./sink.ts";
import { masterView, redactedView } from "./view.ts";

const heartbeatMs = 20_000;

const stopping: CloseReason = { code: 1012, reason: "the gateway stops" };
const broken: CloseReason = { code: 1013, reason: "the events cannot be read, try again" };

export interface HubOptions {
  readonly bus: Bus;
  readonly publisher: Publisher<typeof gatewayEvents>;
  readonly devices: DeviceReader;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: NotificationMetrics;
  readonly limit: ConcurrencyLimit;
  /** Called for each device whose name, ACL or shadow changed, with or without listeners. */
  readonly onDeviceUpdated: (id: string) => void;
}

/**
 * The notification stream of this gateway (ADR 20): follows the events once, whatever the number of listeners, and fans
 * them out in memory. A listener that reconnects first receives what it missed.
 */
export class NotificationHub {
  readonly #options: HubOptions;
  readonly #stopping = new AbortController();
  readonly #listeners = new Set<Listener>();
  readonly #channels = new Channels((audience) => this.#createChannel(audience));
  readonly #buffer = new ReplayBuffer();
  readonly #keys: KeyWatch;
  readonly #records: RecordSubscription;
  readonly #catchUp: CatchUp;
  readonly #following: Promise<void>;
  readonly #offReconnect: () => void;
  #cancelHeartbeat: () => void = () => undefined;

  constructor(options: HubOptions) {
    this.#options = options;
    const { bus, publisher, clock, log, metrics, onDeviceUpdated } = options;
    const { signal } = this.#stopping;
    this.#keys = new KeyWatch({ listeners: this.#listeners, clock, log });
    this.#records = new RecordSubscription({
      bus,
      publisher,
      clock,
      onStored: (records) =>
        this.#channels.deliverRecords(records.map((record) => recordFrame(record, this.position))),
    });
    this.#catchUp = createCatchUp({ bus, buffer: this.#buffer, clock, metrics, signal });
    this.#following = followEvents(
      bus,
      mesh.gateway.follows,
      {
        began: (position) => this.#reset(position),
        events: (batch) => {
          for (const { service, name, key } of batch)
            if (service === deviceEvents.service && name === "updated") onDeviceUpdated(key);
          this.#channels.deliverEvents(this.#buffer.add(batch));
        },
      },
      signal,
    ).catch((error: unknown) => {
      if (!signal.aborted) log.error({ err: error }, "events can no longer be followed");
    });
    this.#offReconnect = bus.onReconnect(() => {
      this.#keys.verifyAll();
      if (!this.#records.active) return;
      this.#records.renew();
      // No stream keeps the records that were published meanwhile.
      this.#channels.deliverGap(this.#gap(["data"]), { recordsOnly: true });
    });
    this.#scheduleHeartbeat();
  }

  /**
   * Reserves a slot for a listener; call the result once to release it. Throws `too_many_listeners`, and `unavailable`
   * while the position in the stream of events is unknown.
   */
  admit(keyId: string, kind: ListenerPrincipal["kind"]): () => void {
    if (this.#buffer.epoch === 0 || this.#stopping.signal.aborted) {
      throw ServiceError.of("unavailable", { cause: new Error("the stream of events is not followed") });
    }
    return this.#options.limit.acquire(keyId, kind);
  }

  /** Resolves when the position in the stream of events is known, or after `timeoutMs`. */
  async awaitPosition(timeoutMs: number): Promise<void> {
    if (this.#buffer.epoch > 0) return;
    await withTimeout(timeoutMs, this.#buffer.advanced, this.#options.clock);
  }

  /** Sequence of the last event; 0 before any. */
  get position(): number {
    return this.#buffer.last;
  }

  /** Serves an admitted listener until it or its key ends. */
  join(listener: Listener): void {
    const { metrics, log } = this.#options;
    const labels = { kind: listener.principal.kind, format: listener.sink.format };
    this.#listeners.add(listener);
    metrics.listeners.inc(labels);
    const channel = this.#channels.enter(audienceOf(listener));
    if (this.#channels.wantRecords && !this.#stopping.signal.aborted) this.#records.start();
    void listener.sink.gone.then(() => {
      this.#listeners.delete(listener);
      metrics.listeners.dec(labels);
      channel.remove(listener);
      this.#channels.leave(channel);
      if (!this.#channels.wantRecords) void this.#records.stop();
    });
    this.#catchUp(listener, channel).catch((error: unknown) => {
      if (!listener.ended) log.warn({ err: error }, "missed events could not be sent to a listener");
      listener.close(broken);
    });
  }

  /** Ends the streams of keys that were revoked. */
  revoke(keyIds: readonly string[]): void {
    this.#keys.revoke(keyIds);
  }

  /** Closes all listeners and admits no new ones; destroys what is left of them after `timeoutMs`. */
  async stop(timeoutMs: number): Promise<void> {
    if (this.#stopping.signal.aborted) return;
    this.#stopping.abort(new Error("the gateway stops"));
    this.#keys.stop();
    this.#cancelHeartbeat();
    this.#offReconnect();
    const left = [...this.#listeners];
    for (const listener of left) listener.close(stopping);
    const gone = Promise.all(left.map(({ sink }) => sink.gone));
    await withTimeout(timeoutMs, gone, this.#options.clock);
    for (const { sink } of this.#listeners) sink.destroy();
    await this.#records.stop();
    await this.#following;
  }

  #reset(position: StreamPosition): void {
    this.#buffer.reset(position);
    if (this.#buffer.epoch > 1) this.#channels.deliverGap(this.#gap(), { recordsOnly: false });
  }

  #gap(names?: readonly string[]): Frame {
    return gapFrame(this.position, this.#options.clock.now(), names);
  }

  #createChannel(audience: Audience): Channel {
    const { devices, metrics, clock } = this.#options;
    const { principal, isRedacted } = audience;
    const view = principal.kind === "master" ? masterView(audience) : deviceView(principal, devices, clock);
    return new Channel({
      audience,
      view: isRedacted ? redactedView(view) : view,
      onSent: (frames) => metrics.frames.inc({ kind: principal.kind }, frames),
      makeGap: () => this.#gap(),
    });
  }

  #scheduleHeartbeat(): void {
    this.#cancelHeartbeat = this.#options.clock.schedule(heartbeatMs, () => {
      for (const { sink } of this.#listeners) sink.heartbeat();
      this.#scheduleHeartbeat();
    });
  }
}

function audienceOf({ principal, isRedacted, subscription }: Listener): Audience {
  const { device, data, account } = subscription;
  if (principal.kind === "master") return { principal, isRedacted, device, data, account };
  return { principal, isRedacted, device: principal.device_id, data, account: false };
}

function recordFrame(record: DataRecord, seq: number): Frame {
  const { device_id, timestamp } = record;
  return new Frame({ seq, id: device_id, name: "data", data: record as Frame["data"], timestamp });
}
