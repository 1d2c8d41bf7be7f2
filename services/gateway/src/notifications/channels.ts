import type { Audience, Channel } from "./channel.ts";
import type { Frame } from "./frame.ts";
import type { RecentEvent } from "./replay-buffer.ts";

/**
 * The channels of this gateway, found by what concerns them: what happens to a device costs those nothing who hear of
 * another, and does not wait with them.
 */
export class Channels {
  readonly #make: (audience: Audience) => Channel;
  readonly #open = new Map<string, { readonly channel: Channel; members: number }>();
  readonly #ofAll = new Set<Channel>();
  readonly #ofDevice = new Map<string, Set<Channel>>();
  #withRecords = 0;

  /** `make` makes a channel when its first member comes. */
  constructor(make: (audience: Audience) => Channel) {
    this.#make = make;
  }

  /** Whether there is one whose members hear of records. */
  get wantRecords(): boolean {
    return this.#withRecords > 0;
  }

  /** The channel of an audience, with one member more; who leaves says so once, by {@link leave}. */
  enter(audience: Audience): Channel {
    const id = idOf(audience);
    const known = this.#open.get(id);
    if (known !== undefined) {
      known.members++;
      return known.channel;
    }
    const channel = this.#make(audience);
    this.#open.set(id, { channel, members: 1 });
    const { device, data } = audience;
    if (data) this.#withRecords++;
    if (device === undefined) this.#ofAll.add(channel);
    else this.#ofDevice.set(device, (this.#ofDevice.get(device) ?? new Set()).add(channel));
    return channel;
  }

  /** Takes a member out; a channel without any is heard of no more. */
  leave(channel: Channel): void {
    const id = idOf(channel.audience);
    const known = this.#open.get(id);
    if (known === undefined || --known.members > 0) return;
    this.#open.delete(id);
    const { device, data } = channel.audience;
    if (data) this.#withRecords--;
    if (device === undefined) {
      this.#ofAll.delete(channel);
      return;
    }
    const ofIt = this.#ofDevice.get(device);
    ofIt?.delete(channel);
    if (ofIt?.size === 0) this.#ofDevice.delete(device);
  }

  tellEvents(events: readonly RecentEvent[]): void {
    for (const channel of this.#ofAll) channel.tell({ kind: "events", events });
    if (this.#ofDevice.size === 0) return;
    for (const [device, own] of Map.groupBy(events, ({ about }) => about))
      for (const channel of this.#ofDevice.get(device) ?? []) channel.tell({ kind: "events", events: own });
  }

  tellRecords(records: readonly Frame[]): void {
    for (const channel of this.#ofAll) if (channel.audience.data) channel.tell({ kind: "records", records });
    if (this.#ofDevice.size === 0) return;
    for (const [device, own] of Map.groupBy(records, ({ id }) => id ?? ""))
      for (const channel of this.#ofDevice.get(device) ?? [])
        if (channel.audience.data) channel.tell({ kind: "records", records: own });
  }

  /** Tells that frames may be missing: to all, or to those who hear of records. */
  tellGap(frame: Frame, { records }: { readonly records: boolean }): void {
    for (const { channel } of this.#open.values())
      if (!records || channel.audience.data) channel.tell({ kind: "frame", frame });
  }
}

/** Audiences with the same id see the same. */
function idOf({ principal: { kind }, device, data, account }: Audience): string {
  return JSON.stringify([kind, device, data, account]);
}
