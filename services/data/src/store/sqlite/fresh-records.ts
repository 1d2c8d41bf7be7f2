import {
  type DataMessage,
  FollowedPage,
  type FollowedRecords,
  type FollowRequest,
  maxFollowed,
} from "../data-store.ts";
import { followedTopics } from "../topic-filter.ts";

/** Bounds of what is kept: records, and bytes of topics and payloads. Beyond one of them the older half is dropped. */
const maxRecords = 20_000;
const maxBytes = 8 * 1024 * 1024;

interface FreshRecord extends Omit<DataMessage, "delivery"> {
  readonly id: number;
}

/**
 * The records that were stored last by this process, the only one that writes the file: a follower that is close to the
 * end is answered from memory. Nothing is kept while nobody follows.
 */
export class FreshRecords {
  /** All that were stored after the id `#after`, up to `#last`, in that order. */
  #records: FreshRecord[] = [];
  #after: number | null = null;
  #last = 0;
  #bytes = 0;
  /** Whether somebody follows, and has since the records were last too many. */
  #isFollowed = false;
  #hasAsked = false;

  /** Takes a batch that was stored. `ids` are the messages' record ids, null for one without a record. */
  add(messages: readonly DataMessage[], ids: readonly (number | null)[]): void {
    if (!this.#isFollowed) return;
    for (const [at, message] of messages.entries()) {
      const id = ids[at] ?? null;
      if (id === null) continue;
      this.#after ??= id - 1;
      this.#last = id;
      this.#records.push({ ...message, id });
      this.#bytes += bytesOf(message);
    }
    if (this.#records.length > maxRecords || this.#bytes > maxBytes) this.#shrink();
  }

  #shrink(): void {
    this.#isFollowed = this.#hasAsked;
    this.#hasAsked = false;
    const dropped = this.#isFollowed ? Math.ceil(this.#records.length / 2) : this.#records.length;
    this.#after = this.#isFollowed ? (this.#records[dropped - 1]?.id ?? this.#after) : null;
    this.#keep(this.#records.slice(dropped));
  }

  #keep(records: FreshRecord[]): void {
    this.#records = records;
    this.#bytes = records.reduce((sum, record) => sum + bytesOf(record), 0);
  }

  /** Forgets the records of a device. */
  forget(deviceId: string): void {
    this.#keep(this.#records.filter((record) => record.deviceId !== deviceId));
  }

  /** The page that a reading thread would return; null where it must be read. */
  follow(request: Omit<FollowRequest, "caller">): FollowedRecords | null {
    this.#isFollowed = true;
    this.#hasAsked = true;
    const { after, topics, deviceIds } = request;
    if (after === null || this.#after === null || after < this.#after || after > this.#last) return null;
    const isWanted = wanting(topics, deviceIds);
    const page = new FollowedPage(request);
    const first = this.#firstBeyond(after);
    const end = Math.min(this.#records.length, first + maxFollowed);
    let next = after;
    for (const record of this.#records.slice(first, end)) {
      const { id, timestamp: time, topic, encoding } = record;
      if (isWanted(record)) {
        const { buffer, byteOffset, length } = record.payload;
        const bytes = Buffer.from(buffer, byteOffset, length);
        const payload = encoding === "text" ? bytes.toString("utf8") : bytes;
        if (!page.add(id, { time, topic, payload })) return { records: page.records, next, atEnd: false };
      }
      next = id;
    }
    const atEnd = end === this.#records.length;
    return { records: page.records, next: atEnd ? this.#last : next, atEnd };
  }

  /** Where the records begin that were stored after an id. */
  #firstBeyond(after: number): number {
    let [low, high] = [0, this.#records.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#records[middle]?.id ?? 0) > after) high = middle;
      else low = middle + 1;
    }
    return low;
  }
}

const bytesOf = ({ topic, payload }: Pick<DataMessage, "topic" | "payload">) => topic.length + payload.length;

/** Whether a record is of a wanted device and topic. */
function wanting(
  topics: readonly string[] | undefined,
  deviceIds: readonly string[] | undefined,
): (record: Pick<FreshRecord, "deviceId" | "topic">) => boolean {
  const devices = deviceIds && new Set(deviceIds);
  const { matches } = topics === undefined ? { matches: () => true } : followedTopics(topics);
  return ({ deviceId, topic }) => (devices?.has(deviceId) ?? true) && matches(topic);
}
