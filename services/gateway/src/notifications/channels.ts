import type { Audience, Channel } from "./channel.ts";
import type { Frame } from "./frame.ts";
import type { BufferedEvent } from "./replay-buffer.ts";

/** The channels of this gateway by device, so that an event costs nothing for listeners of other devices. */
export class Channels {
  readonly #create: (audience: Audience) => Channel;
  readonly #open = new Map<string, { readonly channel: Channel; members: number }>();
  readonly #ofAll = new Set<Channel>();
  readonly #ofDevice = new Map<string, Set<Channel>>();
  #withRecords = 0;

  /** `create` is called for the first member of an audience. */
  constructor(create: (audience: Audience) => Channel) {
    this.#create = create;
  }

  /** Whether some channel receives records. */
  get wantRecords(): boolean {
    return this.#withRecords > 0;
  }

  /** Counts a member of the audience's channel, until {@link leave}. */
  enter(audience: Audience): Channel {
    const id = idOf(audience);
    const known = this.#open.get(id);
    if (known !== undefined) {
      known.members++;
      return known.channel;
    }
    const channel = this.#create(audience);
    this.#open.set(id, { channel, members: 1 });
    const { device, data } = audience;
    if (data) this.#withRecords++;
    if (device === undefined) this.#ofAll.add(channel);
    else this.#ofDevice.set(device, (this.#ofDevice.get(device) ?? new Set()).add(channel));
    return channel;
  }

  /** Removes a member; a channel without members is closed. */
  leave(channel: Channel): void {
    const id = idOf(channel.audience);
    const known = this.#open.get(id);
    if (known === undefined || --known.members > 0) return;
    this.#open.delete(id);
    const { device, data } = channel.audience;
    if (data) this.#withRecords--;
    this.#ofAll.delete(channel);
    const ofIt = this.#ofDevice.get(device ?? "");
    ofIt?.delete(channel);
    if (ofIt?.size === 0) this.#ofDevice.delete(device ?? "");
  }

  deliverEvents(events: readonly BufferedEvent[]): void {
    for (const channel of this.#ofAll) channel.deliver({ kind: "events", events });
    if (this.#ofDevice.size === 0) return;
    for (const [device, own] of Map.groupBy(events, ({ about }) => about))
      for (const channel of this.#ofDevice.get(device) ?? [])
        channel.deliver({ kind: "events", events: own });
  }

  deliverRecords(records: readonly Frame[]): void {
    for (const channel of this.#ofAll)
      if (channel.audience.data) channel.deliver({ kind: "records", records });
    if (this.#ofDevice.size === 0) return;
    for (const [device, own] of Map.groupBy(records, ({ id }) => id ?? ""))
      for (const channel of this.#ofDevice.get(device) ?? [])
        if (channel.audience.data) channel.deliver({ kind: "records", records: own });
  }

  /** Delivers a `gap` frame to all channels, or to those with records. */
  deliverGap(frame: Frame, { recordsOnly }: { readonly recordsOnly: boolean }): void {
    for (const { channel } of this.#open.values())
      if (!recordsOnly || channel.audience.data) channel.deliver({ kind: "frame", frame });
  }
}

/** Audiences with the same id receive the same frames. */
function idOf({ principal: { kind }, isRedacted, device, data, account }: Audience): string {
  return JSON.stringify([kind, isRedacted, device, data, account]);
}
