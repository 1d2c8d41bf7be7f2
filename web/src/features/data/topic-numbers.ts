import type { DataRecord } from "@devmesh/contracts/model/data-record";
import { numbersOf } from "./payload-numbers.ts";

/** Maximum of series of one topic: more cannot be distinguished. */
export const mostSeries = 8;

/** Maximum of topics with numbers. */
export const mostTopics = 50;

/** Maximum of time steps of a topic: about as many as a chart has pixels. */
export const mostSteps = 1024;

/** Numbers of one member over time. */
export interface NumericSeries {
  /** The member's path, such as `air.celsius`; `value` where the payload itself is a number. */
  readonly name: string;
  /** One for each time of the topic; null for none. */
  readonly values: readonly (number | null)[];
  /** In the order of time. */
  readonly steps: readonly Interval[];
}

/** Summary of numbers of a series. */
interface SeriesSummary {
  readonly count: number;
  readonly latest: number;
  readonly least: number;
  readonly most: number;
  readonly mean: number;
}

/** The numbers of one topic, as many as a chart can show. */
export interface TopicNumbers {
  /** Seconds since 1970, ascending. */
  readonly times: readonly number[];
  /** At most {@link mostSeries}, in the order of their first number. */
  readonly series: readonly NumericSeries[];
  /** There are more series than are held. */
  readonly hasMoreSeries: boolean;
  /**
   * Length of a time step, of which only minimum and maximum are kept, in milliseconds; null if all numbers are kept.
   */
  readonly stepMs: number | null;
}

/** Summary of the numbers of a series in a time step. */
interface Interval {
  readonly count: number;
  readonly sum: number;
  readonly least: NumberOfRecord;
  readonly most: NumberOfRecord;
  readonly latest: NumberOfRecord;
}

/** One number, and the time (Unix ms) and id of its record. */
interface NumberOfRecord {
  readonly value: number;
  readonly at: number;
  readonly id: number;
}

/** Numbers of records by their topics, in memory that is bounded however many records there are. */
export interface NumberGathering {
  /** Adds records in any order, each once. */
  readonly add: (records: readonly DataRecord[]) => void;
  /** Drops older numbers, in whole steps; Unix ms. */
  readonly dropBefore: (at: number) => void;
  /** By names of the topics; topics without a change keep their identity. */
  readonly topics: () => ReadonlyMap<string, TopicNumbers>;
  /** There are more topics than are held. */
  readonly hasMoreTopics: () => boolean;
}

/** Starts without numbers. */
export function gatherNumbers(): NumberGathering {
  const topics = new Map<string, TopicSteps>();
  let more = false;
  return {
    add(records) {
      for (const record of records) {
        const numbers = numbersOf(record);
        if (numbers.size === 0) continue;
        let topic = topics.get(record.topic);
        if (topic === undefined) {
          more ||= topics.size >= mostTopics;
          if (topics.size >= mostTopics) continue;
          topic = new TopicSteps();
          topics.set(record.topic, topic);
        }
        topic.add(Date.parse(record.timestamp), record.id, numbers);
      }
    },
    dropBefore(at) {
      for (const [name, topic] of topics) {
        topic.dropBefore(at);
        if (!topic.isEmpty) continue;
        topics.delete(name);
        more = false;
      }
    },
    topics() {
      const named = [...topics].sort(([one], [other]) => (one < other ? -1 : 1));
      return new Map(named.map(([name, topic]) => [name, topic.numbers()]));
    },
    hasMoreTopics: () => more,
  };
}

/** The numbers of one topic in steps of time, which grow longer when they become too many. */
class TopicSteps {
  readonly #names = new Set<string>();
  #hasMoreSeries = false;
  /** By index of the step, which is its Unix time divided by `#stepMs`; then by series. */
  #steps = new Map<number, Map<string, Interval>>();
  #stepMs = 1;
  #numbers: TopicNumbers | null = null;

  get isEmpty(): boolean {
    return this.#steps.size === 0;
  }

  add(at: number, id: number, numbers: ReadonlyMap<string, number>): void {
    const step = this.#stepAt(Math.floor(at / this.#stepMs));
    for (const [name, value] of numbers) {
      if (!this.#names.has(name)) {
        this.#hasMoreSeries ||= this.#names.size >= mostSeries;
        if (this.#names.size >= mostSeries) continue;
        this.#names.add(name);
      }
      const only = { value, at, id };
      merge(step, name, { count: 1, sum: value, least: only, most: only, latest: only });
    }
    this.#numbers = null;
    while (this.#steps.size > mostSteps) this.#lengthen();
  }

  dropBefore(at: number): void {
    const old = [...this.#steps.keys()].filter((index) => (index + 1) * this.#stepMs <= at);
    if (old.length === 0) return;
    for (const index of old) this.#steps.delete(index);
    // A series whose numbers are all gone makes room for another.
    const left = [...this.#steps.values()];
    for (const name of this.#names) {
      if (left.some((step) => step.has(name))) continue;
      this.#names.delete(name);
      this.#hasMoreSeries = false;
    }
    this.#numbers = null;
  }

  numbers(): TopicNumbers {
    this.#numbers ??= this.#read();
    return this.#numbers;
  }

  #stepAt(index: number): Map<string, Interval> {
    let step = this.#steps.get(index);
    if (step === undefined) {
      step = new Map();
      this.#steps.set(index, step);
    }
    return step;
  }

  #lengthen(): void {
    const shorter = this.#steps;
    this.#steps = new Map();
    this.#stepMs *= 2;
    for (const [index, series] of shorter) {
      const step = this.#stepAt(Math.floor(index / 2));
      for (const [name, part] of series) merge(step, name, part);
    }
  }

  #read(): TopicNumbers {
    const steps = [...this.#steps].sort(([one], [other]) => one - other).map(([, step]) => step);
    const marks = new Map<number, Map<string, number>>();
    const put = (at: number, name: string, value: number) => {
      const mark = marks.get(at) ?? new Map<string, number>();
      marks.set(at, mark.set(name, value));
    };
    let thinned = false;
    for (const step of steps) {
      for (const [name, { count, least, most }] of step) {
        thinned ||= count > 2;
        put(least.at, name, least.value);
        put(most.at, name, most.value);
      }
    }
    const times = [...marks.keys()].sort((one, other) => one - other);
    return {
      times: times.map((at) => at / 1_000),
      series: [...this.#names].map((name) => ({
        name,
        values: times.map((at) => marks.get(at)?.get(name) ?? null),
        steps: steps.flatMap((step) => step.get(name) ?? []),
      })),
      hasMoreSeries: this.#hasMoreSeries,
      stepMs: thinned && this.#stepMs > 1 ? this.#stepMs : null,
    };
  }
}

function merge(into: Map<string, Interval>, name: string, more: Readonly<Interval>): void {
  const step = into.get(name);
  into.set(name, step === undefined ? more : together(step, more));
}

function together(one: Interval, other: Interval): Interval {
  return {
    count: one.count + other.count,
    sum: one.sum + other.sum,
    least: other.least.value < one.least.value ? other.least : one.least,
    most: other.most.value > one.most.value ? other.most : one.most,
    latest: other.latest.id > one.latest.id ? other.latest : one.latest,
  };
}

/** Summary of the numbers of a series from one time to another, Unix ms, in whole steps; null if there are none. */
export function summaryOf({ steps }: NumericSeries, from: number, to: number): SeriesSummary | null {
  const isSeen = ({ at }: NumberOfRecord) => at >= from && at <= to;
  const seen = steps.filter(({ least, most, latest }) => isSeen(least) || isSeen(most) || isSeen(latest));
  if (seen.length === 0) return null;
  const { count, sum, latest, least, most } = seen.reduce(together);
  return { count, latest: latest.value, least: least.value, most: most.value, mean: sum / count };
}
