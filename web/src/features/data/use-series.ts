import { lengthOf } from "@devmesh/contracts/model/duration";
import type { SeriesAnswer, SeriesFunction } from "@devmesh/contracts/model/series";
import { keepPreviousData } from "@tanstack/react-query";
import type { z } from "zod";
import { useApi } from "../../api/api-context.tsx";
import { queryKeys } from "../../api/query-keys.ts";
import { serverNow } from "../../api/server-clock.ts";
import { useReading } from "../../api/use-reading.ts";
import type { ChartRange } from "./chart-view.ts";
import type { DeviceChoice, SeriesPlace } from "./device-choice.ts";

/** Which numbers of which devices are read. */
interface SeriesRequest extends DeviceChoice, SeriesPlace {
  /** What is asked of each span. */
  readonly fn: readonly SeriesFunction[];
  /** ISO 8601 duration back from now. */
  readonly range: string;
  /** In place of it: a stretch of time. */
  readonly zoom?: ChartRange | null;
}

/** Numbers of devices, by spans of time. */
export interface SeriesOfDevices extends Pick<z.output<typeof SeriesAnswer>, "every" | "series"> {
  /** The stretch of time that was asked for, Unix ms. */
  readonly from: number;
  readonly to: number;
}

/** Reads numbers of devices; those of a range that ends now are read again while the page is visible. */
export function useSeries(request: SeriesRequest, enabled = true) {
  const api = useApi();
  const { where, device_ids, topic, pointer, fn, range, zoom = null } = request;
  return useReading({
    queryKey: [...queryKeys.series, request],
    enabled,
    placeholderData: keepPreviousData,
    staleTime: readAgainMs(range),
    ...(zoom === null && { refetchInterval: readAgainMs(range) }),
    queryFn: async ({ signal }): Promise<SeriesOfDevices> => {
      const now = serverNow();
      const span = zoom ?? { from: now - lengthOf(range), to: now };
      const { every, series } = await api.call("readSeries", {
        query: {
          ...(device_ids === undefined ? { where: where ?? {} } : { device_id: [...device_ids] }),
          topic,
          pointer: [pointer],
          from: new Date(span.from).toISOString(),
          ...(zoom !== null && { until: new Date(span.to).toISOString() }),
          fn: [...fn],
        },
        signal,
      });
      return { every, series, ...span };
    },
  });
}

/** Interval at which a range that ends now is read again, in milliseconds: about the time that a pixel shows. */
function readAgainMs(range: string): number {
  return Math.max(5_000, Math.min(30_000, lengthOf(range) / 500));
}
