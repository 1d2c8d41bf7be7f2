import { deviceEvents } from "@devmesh/contracts/devices";
import type { gatewayEvents } from "@devmesh/contracts/gateway";
import { mesh } from "@devmesh/contracts/mesh";
import type { DataRecord } from "@devmesh/contracts/model/data-record";
import type { Bus } from "@devmesh/service-kit/bus";
import type { Clock } from "@devmesh/service-kit/clock";
import { ServiceError } from "@devmesh/service-kit/errors";
import { followEvents, type StreamPosition } from "@devmesh/service-kit/event-stream";
import type { Publisher } from "@devmesh/service-kit/events";
import type { Logger } from "@devmesh/service-kit/logger";
import type { Places } from "../http/concurrency-limit.ts";
import { comesWithin } from "../http/with-timeout.ts";
import { type CatchUp, createCatchUp } from "./catch-up.ts";
import { type Audience, Channel } from "./channel.ts";
import { Channels } from "./channels.ts";
import { type DeviceAccess, deviceView } from "./device-view.ts";
import { HeardEvents } from "./event-subscription.ts";
import { Frame, gapFrame } from "./frame.ts";
import { KeyWatch } from "./key-watch.ts";
import type { Listener, ListenerPrincipal } from "./listener.ts";
import type { NotificationMetrics } from "./notification-metrics.ts";
import { RecordHearing } from "./record-subscription.ts";
import type { Farewell } from "./sink.ts";
import { masterView } from "./view.ts";

/** How often a connection is shown to live, in milliseconds. */
const beatMs = 20_000;

const stopping: Farewell = { code: 1012, reason: "the gateway stops" };
const broken: Farewell = { code: 1013, reason: "the events cannot be read, try again" };

/** What a hub works with. */
export interface HubOptions {
  readonly bus: Bus;
  readonly publisher: Publisher<typeof gatewayEvents>;
  readonly devices: DeviceAccess;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: NotificationMetrics;
  readonly places: Places;
  /** Told of a device whose name, ACL or shadow changed, whether somebody listens or not. */
  readonly deviceUpdated: (id: string) => void;
}

/**
 * The notification stream of this gateway (ADR 20): events are followed once, whatever the number of listeners, and
 * fanned out in memory. A listener that comes back is given what it missed, from memory or from the stream of events,
 * and joins the others where that ends.
 */
export class NotificationHub {
  readonly #options: HubOptions;
  readonly #stopping = new AbortController();
  readonly #listeners = new Set<Listener>();
  readonly #channels = new Channels((audience) => this.#channelFor(audience));
  readonly #heard = new HeardEvents();
  readonly #keys: KeyWatch;
  readonly #records: RecordHearing;
  readonly #catchUp: CatchUp;
  readonly #following: Promise<void>;
  readonly #offReconnect: () => void;
  #cancelBeat: () => void = () => undefined;

  constructor(options: HubOptions) {
    this.#options = options;
    const { bus, publisher, clock, log, metrics, deviceUpdated } = options;
    const { signal } = this.#stopping;
    this.#keys = new KeyWatch({ listeners: this.#listeners, clock, log });
    this.#records = new RecordHearing({ bus, publisher, clock, stored: (records) => this.#stored(records) });
    this.#catchUp = createCatchUp({ bus, heard: this.#heard, clock, metrics, signal });
    this.#following = followEvents(
      bus,
      mesh.gateway.follows,
      {
        began: (position) => this.#began(position),
        events: (batch) => {
          for (const { service, name, key } of batch)
            if (service === deviceEvents.service && name === "updated") deviceUpdated(key);
          this.#channels.tellEvents(this.#heard.add(batch));
        },
      },
      signal,
    ).catch((error: unknown) => {
      if (!signal.aborted) log.error({ err: error }, "events can no longer be followed");
    });
    this.#offReconnect = bus.onReconnect(() => {
      this.#keys.lookAgain();
      if (!this.#records.active) return;
      this.#records.sayAgain();
      // No stream keeps what was told of records meanwhile.
      this.#channels.tellGap(this.#gap(["data"]), { records: true });
    });
    this.#scheduleBeat();
  }

  /**
   * Reserves a place for a listener; give it back by calling the result, once. Throws `too_many_listeners`, and
   * `unavailable` while it is not known where the stream of events stands.
   */
  admit(keyId: string, kind: ListenerPrincipal["kind"]): () => void {
    if (this.#heard.recent === null || this.#stopping.signal.aborted) {
      throw ServiceError.of("unavailable", { cause: new Error("the stream of events is not followed") });
    }
    return this.#options.places.take(keyId, kind);
  }

  /** Resolves when it is known where the stream of events stands, or after `boundMs`. */
  async awaitPosition(boundMs: number): Promise<void> {
    if (this.#heard.recent !== null) return;
    await comesWithin(boundMs, this.#heard.advanced, this.#options.clock);
  }

  /** The last sequence known. */
  get position(): number {
    return this.#heard.position;
  }

  /** Gives an admitted listener all that it wishes for, until it or its key goes. */
  join(listener: Listener): void {
    const { metrics, log } = this.#options;
    const labels = { kind: listener.principal.kind, format: listener.outlet.format };
    this.#listeners.add(listener);
    metrics.listeners.inc(labels);
    const channel = this.#channels.enter(audienceOf(listener));
    if (this.#channels.wantRecords && !this.#stopping.signal.aborted) this.#records.start();
    void listener.outlet.gone.then(() => {
      this.#listeners.delete(listener);
      metrics.listeners.dec(labels);
      channel.remove(listener);
      this.#channels.leave(channel);
      if (!this.#channels.wantRecords) void this.#records.stop();
    });
    this.#catchUp(listener, channel).catch((error: unknown) => {
      if (!listener.ended) log.warn({ err: error }, "a listener could not be given what it missed");
      listener.close(broken);
    });
  }

  /** Ends the streams of keys that were revoked. */
  revoke(keyIds: readonly string[]): void {
    this.#keys.revoke(keyIds);
  }

  /** Says farewell to all listeners and takes no new ones; ends what is left of them after `boundMs`. */
  async stop(boundMs: number): Promise<void> {
    if (this.#stopping.signal.aborted) return;
    this.#stopping.abort(new Error("the gateway stops"));
    this.#keys.stop();
    this.#cancelBeat();
    this.#offReconnect();
    const left = [...this.#listeners];
    for (const listener of left) listener.close(stopping);
    const gone = Promise.all(left.map(({ outlet }) => outlet.gone));
    await comesWithin(boundMs, gone, this.#options.clock);
    for (const { outlet } of this.#listeners) outlet.destroy();
    await this.#records.stop();
    await this.#following;
  }

  #began(position: StreamPosition): void {
    const isFirst = this.#heard.recent === null;
    this.#heard.begin(position);
    if (!isFirst) this.#channels.tellGap(this.#gap(), { records: false });
  }

  #stored(records: readonly DataRecord[]): void {
    this.#channels.tellRecords(records.map((record) => recordFrame(record, this.position)));
  }

  #gap(names?: readonly string[]): Frame {
    return gapFrame(this.position, this.#options.clock.now(), names);
  }

  #channelFor(audience: Audience): Channel {
    const { devices, metrics, clock } = this.#options;
    const { principal } = audience;
    const view = principal.kind === "master" ? masterView(audience) : deviceView(principal, devices, clock);
    return new Channel(
      audience,
      view,
      (frames) => metrics.frames.inc({ kind: principal.kind }, frames),
      () => this.#gap(),
    );
  }

  #scheduleBeat(): void {
    this.#cancelBeat = this.#options.clock.schedule(beatMs, () => {
      for (const { outlet } of this.#listeners) outlet.beat();
      this.#scheduleBeat();
    });
  }
}

/** Who sees the same as a listener. */
function audienceOf({ principal, wishes: { device, data, account } }: Listener): Audience {
  if (principal.kind === "master") return { principal, device, data, account };
  return { principal, device: principal.device_id, data, account: false };
}

function recordFrame(record: DataRecord, seq: number): Frame {
  const { device_id, timestamp } = record;
  return new Frame({ seq, id: device_id, name: "data", data: record as Frame["data"], timestamp });
}
