import type { data } from "@devmesh/contracts/data";
import { lengthOf } from "@devmesh/contracts/model/duration";
import { maxPoints, type SeriesSpan } from "@devmesh/contracts/model/series";
import { deviceTopics } from "@devmesh/contracts/mqtt";
import type { Clock } from "@devmesh/service-kit/clock";
import type { Context } from "@devmesh/service-kit/rpc/context";
import type { CallInput, CallOutput } from "@devmesh/service-kit/rpc/implementation";
import { bucketWidths } from "../numbers/rolled-numbers.ts";
import { edgesOf, isOfCalendar, isTimeZone, smallestEvery, usualEvery } from "../numbers/spans.ts";
import type { SeriesTotals } from "../numbers/totals.ts";
import type { SeriesSource, SeriesStore } from "../store/series-store.ts";

/** Records that one answer reads one by one: some seconds. */
const maxRecords = 1_000_000;

export interface SeriesQueriesOptions {
  readonly store: Pick<SeriesStore, "readSpans" | "listSeries">;
  /** How long records, and buckets of five minutes, are kept, in milliseconds. */
  readonly keptMs: number;
  readonly clock: Clock;
}

type SpansInput = CallInput<typeof data, "readSeries">;
type SeriesAnswer = CallOutput<typeof data, "readSeries">;

/** Answers numbers of devices whose right to them is checked. */
export function createSeriesQueries({ store, keptMs, clock }: SeriesQueriesOptions) {
  /** How a range is divided; fails where it cannot be. */
  function dividedRange(query: SpansInput, context: Context<typeof data, "readSeries">) {
    const { tz = "UTC" } = query;
    const fail = (parameter: "until" | "every" | "tz", detail: string) =>
      context.fail("series_range_invalid", [{ pointer: `/query/${parameter}`, detail }]);
    const [from, until, now] = [Date.parse(query.from), Date.parse(query.until), clock.now().getTime()];
    if (until <= from) return fail("until", "must be later than `from`");
    if (!isTimeZone(tz)) return fail("tz", "is not the name of a time zone, such as Europe/Berlin");
    const isOld = from < now - keptMs;
    const auto = usualEvery(until - from);
    const shortest = isOld ? longer(auto, "PT1H") : auto;
    const every = query.every === "auto" ? shortest : query.every;
    const fewerWith = (length: string) =>
      (until - from) / lengthOf(length) > maxPoints ? "" : `; ${length} has fewer`;
    const smallest = isOld ? longer(smallestEvery(until - from), "PT1H") : smallestEvery(until - from);
    if ((until - from) / lengthOf(every) > maxPoints)
      return fail("every", `has more than ${maxPoints} points in this range${fewerWith(smallest)}`);
    const notBefore = Date.parse(query.not_before ?? query.from);
    const edges = edgesOf({ from, until, every, tz }).filter(
      (edge) => query.not_before === undefined || edge >= notBefore,
    );
    if (edges.length < 2)
      return fail("every", `has no whole span in this range, which begins at ${query.not_before}`);
    const source = sourceOf(every, edges);
    if (isOld && source !== "hours") {
      const kept = `numbers from before ${new Date(now - keptMs).toISOString()} are kept by the hour`;
      if (isOfCalendar(every)) return fail("tz", `is not whole hours from UTC: ${kept}`);
      return fail("every", `must be whole hours: ${kept}; ${smallest} fits`);
    }
    return { every, edges, source, fail };
  }

  return {
    async readSeries(
      query: SpansInput,
      context: Context<typeof data, "readSeries">,
      caller: string,
    ): Promise<SeriesAnswer> {
      const { device_id: deviceId, topic, pointer, fill = false } = query;
      const { every, edges, source, fail } = dividedRange(query, context);
      const key = { deviceId, topic: deviceTopics.record(deviceId, topic), pointer };
      const totals = await store.readSpans({ ...key, caller, edges, source, maxRecords }, context.signal);
      if (totals === null)
        return fail("every", `below PT5M reads each record, and these are more than ${maxRecords}`);
      const until = edges.at(-1) ?? 0;
      return {
        every,
        from: new Date(edges[0] ?? 0).toISOString(),
        until: new Date(until).toISOString(),
        partial: until > clock.now().getTime(),
        spans: totals.flatMap((one, at) => (one === null && !fill ? [] : [spanOf(edges[at] ?? 0, one)])),
      };
    },

    async listSeries(
      deviceId: string,
      caller: string,
      signal: AbortSignal,
    ): Promise<CallOutput<typeof data, "listSeries">> {
      const { series, leftOut } = await store.listSeries(deviceId, caller, signal);
      const root = deviceTopics.record(deviceId, "");
      return {
        series: series.map(({ topic, pointer, firstAt, lastAt, last }) => ({
          topic: topic.slice(root.length),
          pointer,
          first_at: new Date(firstAt).toISOString(),
          last_at: new Date(lastAt).toISOString(),
          last,
        })),
        left_out: leftOut,
      };
    },
  };
}

/** The widest buckets that spans are made of. */
function sourceOf(every: string, edges: readonly number[]): SeriesSource {
  const isMadeOf = (width: number) => lengthOf(every) >= width && edges.every((edge) => edge % width === 0);
  if (isMadeOf(bucketWidths.hours)) return "hours";
  return isMadeOf(bucketWidths.minutes) ? "minutes" : "records";
}

function longer(one: string, other: string): string {
  return lengthOf(one) >= lengthOf(other) ? one : other;
}

function spanOf(start: number, totals: SeriesTotals | null): SeriesSpan {
  if (totals === null) return { start, count: 0, min: null, max: null, sum: null, first: null, last: null };
  const { count, min, max, sum, first, last } = totals;
  return { start, count, min, max, sum, first, last };
}
