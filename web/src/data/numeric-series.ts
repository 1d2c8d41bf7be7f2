import type { DataRecord } from "@devmesh/contracts/model/data-record";

/** How deep members of JSON are looked into. */
const deepest = 4;

/** Most series of one chart: more cannot be told apart. */
export const mostSeries = 8;

/** Numbers of one member over time. */
export interface NumericSeries {
  /** The member's path, such as `air.celsius`; `value` where the payload itself is a number. */
  readonly name: string;
  /** Beside the times of the chart; null where a record lacks the member. */
  readonly values: readonly (number | null)[];
}

/** The numbers of one topic. */
export interface TopicNumbers {
  /** Seconds since 1970, ascending. */
  readonly times: readonly number[];
  /** At most {@link mostSeries}, in the order in which they first occur. */
  readonly series: readonly NumericSeries[];
}

/** What a series comes to, for those who do not see the chart. */
export interface SeriesSummary {
  readonly name: string;
  readonly count: number;
  readonly latest: number;
  readonly least: number;
  readonly most: number;
  readonly mean: number;
}

/** The numbers in a payload by the path of their member; none where it holds none. */
export function numbersOf({ message, encoding }: DataRecord): ReadonlyMap<string, number> {
  const found = new Map<string, number>();
  if (encoding !== undefined) return found;
  const text = message.trim();
  // `+21.5`, `021` and `.5` are no JSON, but what devices send.
  if (/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text)) {
    const value = Number(text);
    return Number.isFinite(value) ? found.set("value", value) : found;
  }
  if (!text.startsWith("{") && !text.startsWith("[")) return found;
  try {
    gather(JSON.parse(text), "", 0, found);
  } catch {
    // Text that is no JSON holds no numbers.
  }
  return found;
}

function gather(value: unknown, path: string, depth: number, found: Map<string, number>): void {
  if (typeof value === "number" && Number.isFinite(value)) found.set(path || "value", value);
  if (typeof value !== "object" || value === null || depth >= deepest) return;
  for (const [name, member] of Object.entries(value)) {
    gather(member, path === "" ? name : `${path}.${name}`, depth + 1, found);
  }
}

/** The numbers of records by their topics, which come in the order of their names; topics without numbers are left out. */
export function numbersByTopic(records: readonly DataRecord[]): ReadonlyMap<string, TopicNumbers> {
  const topics = new Map<string, { at: number; numbers: ReadonlyMap<string, number> }[]>();
  for (const record of records) {
    const numbers = numbersOf(record);
    if (numbers.size === 0) continue;
    const points = topics.get(record.topic) ?? [];
    points.push({ at: Date.parse(record.timestamp) / 1_000, numbers });
    topics.set(record.topic, points);
  }
  const named = [...topics].sort(([one], [other]) => (one < other ? -1 : 1));
  return new Map(
    named.map(([topic, points]) => {
      points.sort((one, other) => one.at - other.at);
      const names = [...new Set(points.flatMap(({ numbers }) => [...numbers.keys()]))].slice(0, mostSeries);
      return [
        topic,
        {
          times: points.map(({ at }) => at),
          series: names.map((name) => ({
            name,
            values: points.map(({ numbers }) => numbers.get(name) ?? null),
          })),
        },
      ];
    }),
  );
}

/** What a series comes to. A series has at least one number. */
export function summaryOf({ name, values }: NumericSeries): SeriesSummary {
  let [count, sum, latest, least, most] = [
    0,
    0,
    Number.NaN,
    Number.POSITIVE_INFINITY,
    Number.NEGATIVE_INFINITY,
  ];
  for (const value of values) {
    if (value === null) continue;
    count += 1;
    sum += value;
    latest = value;
    least = Math.min(least, value);
    most = Math.max(most, value);
  }
  return { name, count, latest, least, most, mean: sum / count };
}
