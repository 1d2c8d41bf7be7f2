import { membersOf } from "@devmesh/contracts/model/json-pointer";
import { useApi } from "../../api/api-context.tsx";
import { queryKeys } from "../../api/query-keys.ts";
import { serverNow } from "../../api/server-clock.ts";
import { useReading } from "../../api/use-reading.ts";
import type { ChartRange } from "./chart-view.ts";
import { askedOfSpans, spanNumbers } from "./span-numbers.ts";
import type { TopicNumbers } from "./topic-numbers.ts";

/** Interval at which a range that ends now is read again, in milliseconds. */
const readAgainMs = 60_000;

/** Numbers of a topic whose records are too many to be read. */
interface WholeRange {
  /** The whole topic. */
  readonly topic: string;
  /** Names of the series that are shown. */
  readonly names: readonly string[];
  /** Unix ms; null: from the first number, to now. */
  readonly from: number | null;
  readonly to: number | null;
  /** In place of them: the length of a range that ends now, in milliseconds. */
  readonly lastMs?: number | null;
  readonly enabled: boolean;
}

/** Reads all numbers of a range, by spans of time; null before they are read, and where there are none. */
export function useWholeNumbers({ topic, names, from, to, lastMs = null, enabled }: WholeRange) {
  const api = useApi();
  const [, device = "", ...levels] = topic.split("/");
  const below = levels.join("/");
  return useReading({
    queryKey: [...queryKeys.wholeNumbers, topic, names, from, to, lastMs],
    enabled,
    ...(to === null && { refetchInterval: readAgainMs }),
    queryFn: async ({ signal }): Promise<(TopicNumbers & ChartRange) | null> => {
      const listed = await api.call("listSeries", { params: { id: device }, signal });
      const byName = new Map(
        listed.filter((one) => one.topic === below).map((one) => [nameOf(one.pointer), one] as const),
      );
      const found = names.flatMap((name) => byName.get(name) ?? []);
      if (found.length === 0) return null;
      const first = Math.min(...found.map(({ first_at }) => Date.parse(first_at)));
      const end = to ?? serverNow();
      const begin = lastMs === null ? (from ?? first) : end - lastMs;
      const range = { from: Math.max(begin, first), to: end };
      const answer = await api.call("readSeries", {
        query: {
          device_id: [device],
          topic: below,
          pointer: found.map(({ pointer }) => pointer),
          from: new Date(range.from).toISOString(),
          until: new Date(range.to).toISOString(),
          fn: [...askedOfSpans],
        },
        signal,
      });
      return {
        ...spanNumbers(
          answer.every,
          answer.series.map(({ pointer, points }) => ({ name: nameOf(pointer), points })),
          range,
        ),
        ...range,
      };
    },
  });
}

/** The name of a series in charts of records. */
function nameOf(pointer: string): string {
  return membersOf(pointer).join(".") || "value";
}
