import { type gatewayEvents, recordsWantedMs } from "@devmesh/contracts/gateway";
import { mesh } from "@devmesh/contracts/mesh";
import type { DataRecord } from "@devmesh/contracts/model/data-record";
import type { Bus } from "@devmesh/service-kit/bus";
import type { Clock } from "@devmesh/service-kit/clock";
import { isReason, ServiceError } from "@devmesh/service-kit/errors";
import {
  followEvents,
  replayEvents,
  type StreamedEvent,
  type StreamPosition,
} from "@devmesh/service-kit/event-stream";
import { type Listening, type Publisher, subscribe } from "@devmesh/service-kit/events";
import type { Logger } from "@devmesh/service-kit/logger";
import type { ListenerPlaces } from "../listener-places.ts";
import { type Audience, Channel } from "./channel.ts";
import { Channels } from "./channels.ts";
import { type DeviceAccess, deviceView } from "./device-view.ts";
import { Frame, joinFrames } from "./frame.ts";
import type { Listener, ListenerPrincipal } from "./listener.ts";
import type { NotificationMetrics } from "./notification-metrics.ts";
import type { Farewell } from "./outlet.ts";
import { RecentEvents, remembered } from "./recent-events.ts";
import { createTurns } from "./turns.ts";
import { masterView } from "./view.ts";

/** How often a connection is shown to live, in milliseconds. */
const beatMs = 20_000;
/** How often keys are looked at, in milliseconds: one that has ended ends its streams within it. */
const sweepMs = 500;
/** A key that was verified anew is not looked at again for this long, in milliseconds. */
const verifiedForMs = 30_000;
/** Most keys verified, and most listeners that read the stream of events, at a time. */
const maxVerifying = 64;
const maxReplaying = 16;
/** Most events given to a listener in one piece while it catches up. */
const catchUpSlice = 500;
/** How long a listener may take to read such a piece, in milliseconds: others may wait for their turn behind it. */
const catchUpMs = 30_000;

const ended: Farewell = { code: 1008, reason: "the key has ended" };
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
  readonly places: ListenerPlaces;
}

/**
 * The notification stream of this gateway (ADR 20): events are followed once, whatever the number of listeners, and fanned out in
 * memory. A listener that comes back is given what it missed, from memory or from the stream of events, and joins the others
 * where that ends.
 */
export class NotificationHub {
  readonly #options: HubOptions;
  readonly #stopping = new AbortController();
  readonly #listeners = new Set<Listener>();
  readonly #channels = new Channels((audience) => this.#channelFor(audience));
  readonly #offReconnect: () => void;
  readonly #following: Promise<void>;
  readonly #replaying = createTurns(maxReplaying);
  /** Null until it is known where the stream of events stands. */
  #recent: RecentEvents | null = null;
  #advanced = Promise.withResolvers<void>();
  #sweeping = false;
  #recordsWanted: { readonly hearing: Listening; cancel: () => void } | null = null;
  #cancelSweep: () => void = () => undefined;
  #cancelBeat: () => void = () => undefined;

  constructor(options: HubOptions) {
    this.#options = options;
    const { bus, log } = options;
    this.#following = followEvents(
      bus,
      mesh.gateway.follows,
      { began: (position) => this.#began(position), events: (batch) => this.#happened(batch) },
      this.#stopping.signal,
    ).catch((error: unknown) => {
      if (!this.#stopping.signal.aborted) log.error({ err: error }, "events can no longer be followed");
    });
    this.#offReconnect = bus.onReconnect(() => {
      for (const listener of this.#listeners) listener.checkAtMs = 0;
      this.#sweep();
      if (this.#recordsWanted === null) return;
      options.publisher.live.records_wanted({});
      // No stream keeps what was told of records meanwhile.
      this.#channels.tellGap(this.#gap(["data"]), { records: true });
    });
    this.#scheduleSweep();
    this.#scheduleBeat();
  }

  /**
   * Reserves a place for a listener; give it back by calling the result, once. Throws `too_many_listeners`, and `unavailable`
   * while it is not known where the stream of events stands.
   */
  admit(keyId: string, kind: ListenerPrincipal["kind"]): () => void {
    if (this.#recent === null || this.#stopping.signal.aborted) {
      throw ServiceError.of("unavailable", { cause: new Error("the stream of events is not followed") });
    }
    return this.#options.places.take(keyId, kind);
  }

  /** Resolves when it is known where the stream of events stands, or after `boundMs`. */
  async awaitPosition(boundMs: number): Promise<void> {
    if (this.#recent !== null) return;
    const waiting = new AbortController();
    const late = this.#options.clock.sleep(boundMs, waiting.signal).catch(() => undefined);
    await Promise.race([this.#advanced.promise, late]);
    waiting.abort(new Error("the position is known"));
  }

  /** The last sequence known. */
  get position(): number {
    return this.#recent?.last ?? 0;
  }

  /** Gives an admitted listener all that it wishes for, until it or its key goes. */
  join(listener: Listener): void {
    const { metrics } = this.#options;
    const labels = { kind: listener.principal.kind, format: listener.outlet.format };
    this.#listeners.add(listener);
    metrics.listeners.inc(labels);
    const channel = this.#channels.enter(audienceOf(listener));
    if (this.#channels.wantRecords) this.#wantRecords();
    void listener.outlet.gone.then(() => {
      this.#listeners.delete(listener);
      metrics.listeners.dec(labels);
      channel.remove(listener);
      this.#channels.leave(channel);
      if (!this.#channels.wantRecords) this.#wantRecordsNoMore();
    });
    this.#catchUp(listener, channel).catch((error: unknown) => {
      const { log } = this.#options;
      if (!listener.ended) log.warn({ err: error }, "a listener could not be given what it missed");
      listener.close(broken);
    });
  }

  /** Ends the streams of keys that were revoked. */
  revoke(keyIds: readonly string[]): void {
    const revoked = new Set(keyIds);
    for (const listener of this.#listeners) {
      if (revoked.has(listener.caller.keyId)) listener.close(ended);
    }
  }

  /** Says farewell to all listeners and takes no new ones; ends what is left of them after `boundMs`. */
  async stop(boundMs: number): Promise<void> {
    if (this.#stopping.signal.aborted) return;
    this.#stopping.abort(new Error("the gateway stops"));
    this.#cancelSweep();
    this.#cancelBeat();
    this.#offReconnect();
    const left = [...this.#listeners];
    for (const listener of left) listener.close(stopping);
    const waiting = new AbortController();
    const late = this.#options.clock.sleep(boundMs, waiting.signal).catch(() => undefined);
    await Promise.race([Promise.all(left.map(({ outlet }) => outlet.gone)), late]);
    waiting.abort(new Error("all listeners are gone"));
    for (const { outlet } of this.#listeners) outlet.destroy();
    await this.#recordsWanted?.hearing.stop();
    await this.#following;
  }

  #began(position: StreamPosition): void {
    const isFirst = this.#recent === null;
    this.#recent = new RecentEvents(position.after);
    if (!isFirst) this.#channels.tellGap(this.#gap(), { records: false });
    this.#advance();
  }

  #happened(batch: readonly StreamedEvent[]): void {
    const recent = this.#recent;
    if (recent === null) return;
    const events = recent.add(batch);
    this.#channels.tellEvents(events);
    this.#advance();
  }

  #advance(): void {
    this.#advanced.resolve();
    this.#advanced = Promise.withResolvers<void>();
  }

  #gap(names?: readonly string[], seq = this.position): Frame {
    const data = names === undefined ? {} : { names: [...names] };
    const timestamp = this.#options.clock.now().toISOString();
    return new Frame({ seq, id: null, name: "gap", data, timestamp });
  }

  /** Gives a listener what it missed, then puts it beside those who see the same. */
  async #catchUp(listener: Listener, channel: Channel): Promise<void> {
    const { wishes, outlet } = listener;
    const give = async (frames: readonly Frame[]) => {
      if (frames.length === 0) return;
      listener.send(joinFrames(frames, outlet.format));
      this.#options.metrics.frames.inc({ kind: listener.principal.kind }, frames.length);
      const late = Promise.withResolvers<void>();
      const cancel = this.#options.clock.schedule(catchUpMs, () => {
        listener.closeAsSlow();
        late.resolve();
      });
      await Promise.race([outlet.drained(), late.promise]);
      cancel();
    };
    let recent = this.#recent;
    let cursor = wishes.after ?? this.position;
    // Another gateway may be ahead of this one, or the sequence be of a stream that is gone: the stream knows.
    if (cursor > this.position) cursor = await this.#replay(listener, channel, cursor, cursor, give);
    while (!listener.ended) {
      if (this.#recent !== recent) {
        recent = this.#recent;
        cursor = recent?.from ?? 0;
        await give([this.#gap(undefined, cursor)]);
      } else if (recent === null || cursor > recent.last) {
        await Promise.race([this.#advanced.promise, outlet.gone]);
      } else if (cursor < recent.from) {
        cursor = await this.#replay(listener, channel, cursor, recent.from, give);
      } else {
        const events = recent.behind(cursor).slice(0, catchUpSlice);
        const last = events.at(-1);
        if (last !== undefined) {
          await give(await channel.view.framesOf(events));
          cursor = last.sequence;
        } else if (channel.unsettled !== undefined) {
          await channel.unsettled;
        } else {
          channel.add(listener);
          if (wishes.data && wishes.after !== undefined) {
            // Records are told as they are stored, and kept elsewhere.
            listener.send(this.#gap(["data"]).bytes(outlet.format));
          }
          return;
        }
      }
    }
  }

  /** Reads events behind `after` up to `until` from the stream; answers where the listener stands then. */
  async #replay(
    listener: Listener,
    { view, audience }: Channel,
    after: number,
    until: number,
    give: (frames: readonly Frame[]) => Promise<void>,
  ): Promise<number> {
    const { bus, metrics } = this.#options;
    using _ = await this.#replaying.take();
    // Gone while it waited.
    if (listener.ended) return after;
    metrics.replays.inc();
    const signal = this.#stopping.signal;
    let cursor = after;
    let moved = false;
    for await (const { position, events } of replayEvents(bus, mesh.gateway.follows, {
      after,
      until: () => until,
      about: audience.device,
      signal,
    })) {
      if (listener.ended) return cursor;
      if (position.gap) {
        await give([this.#gap(undefined, position.after)]);
        moved = true;
      }
      if (events.length > 0) await give(await view.framesOf(events.map(remembered)));
      cursor = position.after;
    }
    return moved ? cursor : Math.max(cursor, until);
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

  /** While somebody listens for records, `data` is told so, and what it tells is heard. */
  #wantRecords(): void {
    if (this.#recordsWanted !== null || this.#stopping.signal.aborted) return;
    const { bus, publisher, clock } = this.#options;
    const [, records] = mesh.gateway.subscribes;
    const hearing = subscribe(bus, records, { stored: (event) => this.#stored(event) }, { mode: "each" });
    const wanted: { readonly hearing: Listening; cancel: () => void } = { hearing, cancel: () => undefined };
    const say = () => {
      publisher.live.records_wanted({});
      wanted.cancel = clock.schedule(recordsWantedMs / 3, say);
    };
    this.#recordsWanted = wanted;
    say();
  }

  #wantRecordsNoMore(): void {
    const wanted = this.#recordsWanted;
    this.#recordsWanted = null;
    wanted?.cancel();
    void wanted?.hearing.stop();
  }

  #stored({ records }: { readonly records: readonly DataRecord[] }): void {
    this.#channels.tellRecords(records.map((record) => recordFrame(record, this.position)));
  }

  #scheduleBeat(): void {
    this.#cancelBeat = this.#options.clock.schedule(beatMs, () => {
      for (const { outlet } of this.#listeners) outlet.beat();
      this.#scheduleBeat();
    });
  }

  #scheduleSweep(): void {
    this.#cancelSweep = this.#options.clock.schedule(sweepMs, () => {
      this.#sweep();
      this.#scheduleSweep();
    });
  }

  /** Ends streams of keys that have expired or do not stand any more. */
  #sweep(): void {
    const { clock, log } = this.#options;
    const now = clock.now().getTime();
    const nowMs = clock.monotonicMs();
    const unknown: { readonly listener: Listener; readonly verifying: Promise<unknown> }[] = [];
    for (const listener of this.#listeners) {
      if (listener.ended) continue;
      if (listener.caller.expiresAtMs <= now) listener.close(ended);
      else if (listener.checkAtMs <= nowMs && !this.#sweeping && unknown.length < maxVerifying) {
        const verifying = verifyAgain(listener);
        if (verifying !== undefined) unknown.push({ listener, verifying });
      }
    }
    if (unknown.length === 0) return;
    this.#sweeping = true;
    const settled = unknown.map(async ({ listener, verifying }) => {
      try {
        await verifying;
        listener.checkAtMs = clock.monotonicMs() + verifiedForMs;
      } catch (error) {
        if (isReason(error, "key_invalid")) listener.close(ended);
        else log.debug({ err: error }, "a listener's key could not be verified");
      }
    });
    void Promise.all(settled).finally(() => {
      this.#sweeping = false;
      // More may be due than were verified at a time.
      if (unknown.length === maxVerifying) this.#sweep();
    });
  }
}

/** Undefined where the key is remembered and stands. */
function verifyAgain({ caller }: Listener): Promise<unknown> | undefined {
  try {
    const found = caller.verifyAgain();
    return found instanceof Promise ? found : undefined;
  } catch (error) {
    return Promise.reject(error instanceof Error ? error : new Error(String(error)));
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
