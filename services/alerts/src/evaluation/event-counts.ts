/** What happened to a device. */
export interface Occurrence {
  readonly device_id: string;
  /** Unix milliseconds. */
  readonly at: number;
}

/** A condition that begins or ends to hold for a device, at a time in Unix milliseconds. */
export interface Turn extends Occurrence {
  readonly holds: boolean;
}

/** How often something happened to devices, and whether that is often enough. */
export class EventCounts {
  readonly #count: number;
  readonly #withinMs: number;
  /** The last times of each device, the oldest first; at most as many as are counted. */
  readonly #times = new Map<string, number[]>();
  /** Until when it holds, by device. */
  readonly #until = new Map<string, number>();

  constructor({ count, withinMs }: { readonly count: number; readonly withinMs: number }) {
    this.#count = count;
    this.#withinMs = withinMs;
  }

  /** Counts; returns what that begins, after what had ended before. */
  add({ device_id, at }: Occurrence): Turn[] {
    const turns = this.#ended(device_id, at);
    const times = this.#times.get(device_id) ?? [];
    times.push(at);
    if (times.length > this.#count) times.shift();
    this.#times.set(device_id, times);
    const [first = at] = times;
    const isOften = times.length === this.#count && at - first <= this.#withinMs;
    if (!isOften) return turns;
    if (!this.#until.has(device_id)) turns.push({ device_id, at, holds: true });
    this.#until.set(device_id, first + this.#withinMs);
    return turns;
  }

  /** What has ended before a time. Times that count no more are forgotten. */
  expire(now: number): Turn[] {
    for (const [id, times] of this.#times)
      if ((times.at(-1) ?? 0) + this.#withinMs < now) this.#times.delete(id);
    return [...this.#until.keys()].flatMap((id) => this.#ended(id, now));
  }

  /** Devices for which it holds, with the time that it began at the latest. */
  get holding(): Turn[] {
    return [...this.#until.keys()].map((device_id) => ({
      device_id,
      at: this.#times.get(device_id)?.at(-1) ?? 0,
      holds: true,
    }));
  }

  holdsFor(deviceId: string): boolean {
    return this.#until.has(deviceId);
  }

  #ended(device_id: string, now: number): Turn[] {
    const until = this.#until.get(device_id);
    if (until === undefined || until >= now) return [];
    this.#until.delete(device_id);
    return [{ device_id, at: until, holds: false }];
  }
}
