import {
  type Diagnosis,
  type DiagnosisReport,
  loginRefusals,
  type UnknownDevice,
} from "@devmesh/contracts/model/diagnostics";

/** Entries kept of one device, and of all unknown ids. */
const maxEntries = 50;

/** Entries kept of all devices, some 15 MB; beyond it, the device that was quiet for longest is forgotten. */
const maxTotal = 50_000;

/** Equal entries less than this apart are one, in milliseconds: a device that flaps must not bury the rest. */
const combineWithinMs = 60_000;

/** Largest clock difference between services, in milliseconds. */
const clockSkewMs = 2_000;

type Entry<T extends Diagnosis | UnknownDevice> = Omit<T, "first_at" | "last_at"> & {
  readonly firstMs: number;
  readonly lastMs: number;
};

/** The last things that happened to each device, and under ids that are no device: in memory, bounded. */
export class DiagnosisHistory {
  /** By device, newest first; the device to which something happened last is the last one. */
  readonly #devices = new Map<string, readonly Entry<Diagnosis>[]>();
  #unknown: readonly Entry<UnknownDevice>[] = [];
  #total = 0;

  /** Entries kept of all devices. */
  get total(): number {
    return this.#total;
  }

  /** Whether something is kept of a device of that id. */
  has(id: string): boolean {
    return this.#devices.has(id);
  }

  /**
   * Records a report; returns the entry that it belongs to, with the equal ones before it. Null for one that is not
   * kept: of ids that are no device only refused logins are.
   */
  add({ id, registered, timestamp, ...what }: DiagnosisReport): Diagnosis | null {
    const at = Date.parse(timestamp);
    const entry = { ...what, firstMs: at, lastMs: at };
    if (registered ?? this.has(id)) return described(this.#addToDevice(id, entry));
    const reason = loginRefusals.find((refusal) => refusal === what.reason);
    if (reason === undefined) return null;
    const { name: _, topic: __, ...login } = entry;
    const tried = { ...login, id, reason };
    const isEqual = (other: Entry<UnknownDevice>) => other.id === id && isSame(other, tried);
    this.#unknown = withEntry(this.#unknown, tried, isEqual);
    return described(entry);
  }

  /** Of one device that exists since `createdAt`, newest first. */
  ofDevice(id: string, createdAt: number): Diagnosis[] {
    const entries = this.#devices.get(id) ?? [];
    return entries.filter(({ lastMs }) => lastMs >= createdAt - clockSkewMs).map(described);
  }

  /** Refused logins under ids that were no device, newest first. */
  ofUnknown(): UnknownDevice[] {
    return this.#unknown.map(described);
  }

  #addToDevice(id: string, entry: Entry<Diagnosis>): Entry<Diagnosis> {
    const before = this.#devices.get(id) ?? [];
    const isEqual = (other: Entry<Diagnosis>) =>
      other.name === entry.name &&
      other.topic === entry.topic &&
      isSame(other, entry) &&
      entry.firstMs - other.lastMs < combineWithinMs;
    const after = withEntry(before, entry, isEqual);
    this.#devices.delete(id);
    this.#devices.set(id, after);
    this.#total += after.length - before.length;
    for (const [oldest, { length }] of this.#devices) {
      if (this.#total <= maxTotal) break;
      this.#devices.delete(oldest);
      this.#total -= length;
    }
    return after.find(isEqual) ?? entry;
  }
}

type Comparable = Pick<Diagnosis, "reason" | "address" | "client_id">;

function isSame(a: Comparable, b: Comparable): boolean {
  return a.reason === b.reason && a.address === b.address && a.client_id === b.client_id;
}

/** The newest first, with `entry` in place of an equal one. */
function withEntry<T extends Entry<Diagnosis | UnknownDevice>>(
  entries: readonly T[],
  entry: T,
  isEqual: (other: T) => boolean,
): readonly T[] {
  const equal = entries.find(isEqual);
  const others = entries.filter((other) => other !== equal);
  const combined =
    equal === undefined ? entry : { ...entry, count: equal.count + entry.count, firstMs: equal.firstMs };
  // Reports of different services may arrive in another order.
  const newer = others.filter(({ lastMs }) => lastMs > entry.lastMs);
  return [...newer, combined, ...others.slice(newer.length)].slice(0, maxEntries);
}

function described<T extends Entry<Diagnosis | UnknownDevice>>({ firstMs, lastMs, ...entry }: T) {
  return {
    ...entry,
    first_at: new Date(firstMs).toISOString(),
    last_at: new Date(lastMs).toISOString(),
  };
}
