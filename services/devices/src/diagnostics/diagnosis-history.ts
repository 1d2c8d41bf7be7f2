import {
  type DeviceDiagnosis,
  type Diagnosis,
  type DiagnosisReport,
  type DiagnosisWord,
  diagnosisFrames,
  loginRefusals,
  type UnknownDevice,
} from "@devmesh/contracts/model/diagnostics";
import { allowedTopics } from "@devmesh/contracts/mqtt";

/** Entries kept of one device, and of all unknown ids. */
const maxEntries = 50;

/** Topics of one device with entries of one name and reason: one that uses many must not bury the rest. */
const maxTopics = 16;

/** Entries kept of all devices, some 45 MB; beyond it, the device that was quiet for longest is forgotten. */
const maxTotal = { problems: 50_000, connections: 100_000 } as const;

/** Equal entries less than this apart are one, in milliseconds: a device that flaps must not bury the rest. */
const combineWithinMs = 60_000;

/** Largest clock difference between services, in milliseconds. */
const clockSkewMs = 2_000;

/** How long a device is said to have a problem after it happened, in milliseconds. */
const problemMs = 24 * 3_600_000;

type Entry<T extends Diagnosis | UnknownDevice> = Omit<T, "first_at" | "last_at"> & {
  readonly firstMs: number;
  readonly lastMs: number;
  /** Ascends with each report: entries of one time have an order that later ones do not change. */
  readonly seq: number;
};

/** Something that is wrong with a device now. */
export type Problem = Pick<Diagnosis, "name" | "reason">;

/** Which entries of all devices are listed. */
export interface DiagnosisListing {
  /** Their name or reason; all that went wrong unless given. */
  readonly word?: DiagnosisWord;
  /** Unix ms. */
  readonly since?: number;
  /** A cursor of an entry: only those after it. */
  readonly after?: string;
}

/** An entry of a device in the list of all, with its cursor. */
export interface ListedDiagnosis {
  readonly id: string;
  readonly cursor: string;
  /** Whether it is of a device that exists since `createdAt`. */
  readonly isSince: (createdAt: number) => boolean;
  readonly describe: () => DeviceDiagnosis;
}

const problemNames: ReadonlySet<string> = new Set(diagnosisFrames);

/** The last things that happened to each device, and under ids that are no device: in memory, bounded. */
export class DiagnosisHistory {
  /** Apart, since a fleet that reconnects must not displace what went wrong. */
  readonly #problems = new EntriesByDevice(maxTotal.problems);
  readonly #connections = new EntriesByDevice(maxTotal.connections);
  #unknown: readonly Entry<UnknownDevice>[] = [];
  #reports = 0;

  /** Entries kept of all devices. */
  get total(): number {
    return this.#problems.total + this.#connections.total;
  }

  /** Whether something is kept of a device of that id. */
  has(id: string): boolean {
    return this.#problems.of(id).length > 0 || this.#connections.of(id).length > 0;
  }

  /**
   * Records a report; returns the entry that it belongs to, with the equal ones before it. Null for one that is not
   * kept: of ids that are no device only refused logins are.
   */
  add({ id, registered, timestamp, ...what }: DiagnosisReport): Diagnosis | null {
    const at = Date.parse(timestamp);
    this.#reports += 1;
    const entry = { ...what, firstMs: at, lastMs: at, seq: this.#reports };
    if (registered ?? this.has(id)) {
      const detail = what.detail ?? (what.reason === "topic" ? allowedTopics(id, what.name) : null);
      const kept = problemNames.has(what.name) ? this.#problems : this.#connections;
      return described(kept.add(id, { ...entry, detail }));
    }
    const reason = loginRefusals.find((refusal) => refusal === what.reason);
    if (reason === undefined) return null;
    const { name: _, topic: __, detail: ___, ...login } = entry;
    const tried = { ...login, id, reason };
    const isEqual = (other: Entry<UnknownDevice>) => other.id === id && isSame(other, tried);
    this.#unknown = withEntry(this.#unknown, tried, isEqual);
    return described(entry);
  }

  /** Of one device that exists since `createdAt`, newest first. */
  ofDevice(id: string, createdAt: number): Diagnosis[] {
    return [...this.#problems.of(id), ...this.#connections.of(id)]
      .filter(isSince(createdAt))
      .toSorted((one, other) => other.lastMs - one.lastMs)
      .slice(0, maxEntries)
      .map(described);
  }

  /** Refused logins under ids that were no device, newest first. */
  ofUnknown(): UnknownDevice[] {
    return this.#unknown.map(described);
  }

  /** What is wrong with a device that exists since `createdAt`, newest first. */
  problemsOf(id: string, createdAt: number, now: number): Problem[] {
    const connectedAt = this.#connectedAt(id);
    const problems = new Map<string, Problem>();
    for (const entry of this.#problems.of(id)) {
      if (!isSince(createdAt)(entry) || !isCurrent(entry, connectedAt, now)) continue;
      problems.set(wordOf(entry), { name: entry.name, reason: entry.reason });
    }
    return [...problems.values()];
  }

  /** Ids with such a problem, of a device that may have been deleted. `word` is a name, a reason or `any`. */
  devicesWithProblem(word: string, now: number): string[] {
    const ids: string[] = [];
    for (const [id, entries] of this.#problems) {
      const connectedAt = this.#connectedAt(id);
      if (entries.some((entry) => isProblemOf(word, entry) && isCurrent(entry, connectedAt, now)))
        ids.push(id);
    }
    return ids;
  }

  /** Entries of all devices, newest first; null where `after` is no cursor. */
  list({ word, since = 0, after }: DiagnosisListing): ListedDiagnosis[] | null {
    const begin = after === undefined ? null : placeOf(after);
    if (begin === undefined) return null;
    const kept = word === "connected" || word === "disconnected" ? this.#connections : this.#problems;
    const found: ListedPlace[] = [];
    for (const [id, entries] of kept) {
      for (const entry of entries) {
        if (entry.lastMs < since || (word !== undefined && !isProblemOf(word, entry))) continue;
        const place = { id, lastMs: entry.lastMs, seq: entry.seq, entry };
        if (begin === null || compare(place, begin) > 0) found.push(place);
      }
    }
    return found.sort(compare).map(({ id, lastMs, seq, entry }) => ({
      id,
      cursor: `${lastMs}.${id}.${seq}`,
      isSince: (createdAt) => isSince(createdAt)(entry),
      describe: () => ({ id, ...described(entry) }),
    }));
  }

  /** When the device connected last; 0 where that is not known. */
  #connectedAt(id: string): number {
    return this.#connections.of(id).find(({ name }) => name === "connected")?.lastMs ?? 0;
  }
}

/** The word for a problem: its reason, or its name where it has none. */
export function wordOf({ name, reason }: Problem): string {
  return reason ?? name;
}

/** Whether a problem is one that a name, a reason or `any` means. */
export function isProblemOf(word: string, { name, reason }: Problem): boolean {
  return word === "any" || word === name || word === reason;
}

/** A refused login is over when the device connects; everything else after a day. */
function isCurrent({ name, lastMs }: Entry<Diagnosis>, connectedAt: number, now: number): boolean {
  return lastMs > now - problemMs && (name !== "login_refused" || lastMs > connectedAt);
}

function isSince(createdAt: number): (entry: Pick<Entry<Diagnosis>, "lastMs">) => boolean {
  return ({ lastMs }) => lastMs >= createdAt - clockSkewMs;
}

/** A place in the list of all entries. */
interface EntryPosition {
  readonly lastMs: number;
  readonly id: string;
  readonly seq: number;
}

interface ListedPlace extends EntryPosition {
  readonly entry: Entry<Diagnosis>;
}

/** The newest first, then by id, then the one that was reported last. */
function compare(one: EntryPosition, other: EntryPosition): number {
  if (one.lastMs !== other.lastMs) return other.lastMs - one.lastMs;
  if (one.id !== other.id) return one.id < other.id ? -1 : 1;
  return other.seq - one.seq;
}

function placeOf(cursor: string): EntryPosition | undefined {
  const [, lastMs, id, seq] = /^(\d{1,15})\.([\w-]{1,64})\.(\d{1,15})$/.exec(cursor) ?? [];
  return id === undefined ? undefined : { lastMs: Number(lastMs), id, seq: Number(seq) };
}

/** The last entries of each device, newest first. */
class EntriesByDevice {
  /** The device to which something happened last is the last one. */
  readonly #devices = new Map<string, readonly Entry<Diagnosis>[]>();
  readonly #max: number;
  #total = 0;

  constructor(max: number) {
    this.#max = max;
  }

  get total(): number {
    return this.#total;
  }

  of(id: string): readonly Entry<Diagnosis>[] {
    return this.#devices.get(id) ?? [];
  }

  [Symbol.iterator](): IterableIterator<[string, readonly Entry<Diagnosis>[]]> {
    return this.#devices.entries();
  }

  /** Adds an entry to an equal one, or as a new one; returns it. */
  add(id: string, entry: Entry<Diagnosis>): Entry<Diagnosis> {
    const before = this.of(id);
    const isEqual = (other: Entry<Diagnosis>) =>
      other.name === entry.name &&
      other.topic === entry.topic &&
      isSame(other, entry) &&
      entry.firstMs - other.lastMs < combineWithinMs;
    const after = withoutOldest(withEntry(before, entry, isEqual), entry);
    this.#devices.delete(id);
    this.#devices.set(id, after);
    this.#total += after.length - before.length;
    for (const [oldest, { length }] of this.#devices) {
      if (this.#total <= this.#max) break;
      this.#devices.delete(oldest);
      this.#total -= length;
    }
    return after.find(isEqual) ?? entry;
  }
}

/** Without the oldest topic where there are too many with the name and the reason of `newest`. */
function withoutOldest(entries: readonly Entry<Diagnosis>[], newest: Entry<Diagnosis>) {
  if (newest.topic === null) return entries;
  const { name, reason } = newest;
  const alike = entries.filter((one) => one.name === name && one.reason === reason && one.topic !== null);
  const surplus = alike.length > maxTopics ? alike.at(-1) : undefined;
  return surplus === undefined ? entries : entries.filter((one) => one !== surplus);
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
  // Reports of different services may arrive in another order.
  const combined = equal === undefined ? entry : combine(equal, entry);
  const newer = others.filter(({ lastMs }) => lastMs > combined.lastMs);
  return [...newer, combined, ...others.slice(newer.length)].slice(0, maxEntries);
}

/** Two equal entries as one, with the details of the newer one. */
function combine<T extends Entry<Diagnosis | UnknownDevice>>(one: T, other: T): T {
  return {
    ...(other.lastMs < one.lastMs ? one : other),
    count: one.count + other.count,
    firstMs: Math.min(one.firstMs, other.firstMs),
    lastMs: Math.max(one.lastMs, other.lastMs),
    seq: Math.max(one.seq, other.seq),
  };
}

function described<T extends Entry<Diagnosis | UnknownDevice>>({ firstMs, lastMs, seq: _, ...entry }: T) {
  return {
    ...entry,
    first_at: new Date(firstMs).toISOString(),
    last_at: new Date(lastMs).toISOString(),
  };
}
