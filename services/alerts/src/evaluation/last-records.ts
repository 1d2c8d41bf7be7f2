import type { data } from "@devmesh/contracts/data";
import { topicMatcher } from "@devmesh/contracts/model/topic-match";
import type { CallOutput } from "@devmesh/service-kit/rpc/implementation";
import { nameOfRecord } from "./rule-book.ts";

/** That a device sent a record; its name is that below the device, its time in Unix milliseconds. */
export interface SeenTopic {
  readonly device_id: string;
  readonly name: string;
  readonly at: number;
}
type ReadPage = (after: string | undefined) => Promise<CallOutput<typeof data, "listLatest">>;

interface Followed {
  readonly matches: (name: string) => boolean;
  /** By device; Unix milliseconds. */
  readonly last: Map<string, number>;
  isComplete: boolean;
}

/** When devices last sent a record of some topics, in the replica that evaluates. */
export class LastRecords {
  readonly #byFilter = new Map<string, Followed>();
  /** The topic after which reading goes on; null where nothing is left to read. */
  #after: { readonly topic: string | undefined } | null = null;

  /** Follows these topics, and forgets others. What was stored before is to be {@link load}ed. */
  follow(filters: readonly string[]): void {
    for (const filter of this.#byFilter.keys()) if (!filters.includes(filter)) this.#byFilter.delete(filter);
    for (const filter of filters) {
      if (this.#byFilter.has(filter)) continue;
      this.#byFilter.set(filter, { matches: topicMatcher(filter), last: new Map(), isComplete: false });
      this.#after = { topic: undefined };
    }
  }

  note({ device_id, name, at }: SeenTopic): void {
    for (const { matches, last } of this.#byFilter.values())
      if (matches(name) && at > (last.get(device_id) ?? 0)) last.set(device_id, at);
  }

  /** Reads what was stored before topics were followed, while `goesOn`; the next call goes on. */
  async load(read: ReadPage, goesOn: () => boolean): Promise<void> {
    while (this.#after !== null && goesOn()) {
      const { next, items } = await read(this.#after.topic);
      for (const { device_id, topic, timestamp } of items)
        this.note({ device_id, name: nameOfRecord({ topic }), at: Date.parse(timestamp) });
      this.#after = next === null ? null : { topic: next };
    }
    if (this.#after === null) for (const followed of this.#byFilter.values()) followed.isComplete = true;
  }

  /** By device; null until all is known. Unix milliseconds. */
  of(filter: string): ReadonlyMap<string, number> | null {
    const followed = this.#byFilter.get(filter);
    return followed?.isComplete === true ? followed.last : null;
  }

  forget(isGone: (deviceId: string, at: number) => boolean): void {
    for (const { last } of this.#byFilter.values())
      for (const [id, at] of last) if (isGone(id, at)) last.delete(id);
  }
}
