import { useInfiniteQuery } from "@tanstack/react-query";
import { useEffect, useMemo, useRef } from "react";
import type { ApiClient } from "../../../api/api-client.ts";
import { useApi } from "../../../api/api-context.tsx";
import { queryKeys } from "../../../api/query-keys.ts";
import type { DevicePage, DeviceSelection } from "../shared/device-lists.ts";
import { type DeviceRow, rowOf } from "../shared/device-row.ts";
import { type DeviceOrder, inOrder, isServerOrder } from "./device-order.ts";

/** Number of devices in the first page, which should be fast, and in each further one. */
const firstPageSize = 100;
const pageSize = 500;

/** The devices of a selection read so far, in an order. */
export interface DeviceList {
  readonly rows: readonly DeviceRow[];
  readonly error: unknown;
  /** Nothing is there yet. */
  readonly isPending: boolean;
  /** There are more than are read. */
  readonly hasMore: boolean;
  readonly isReading: boolean;
  readonly readMore: () => void;
  readonly readAgain: () => void;
}

/**
 * Reads devices a page at a time. The server lists the oldest first; another order, or `whole`, needs them all, which
 * are then read one page after the other while what is there is shown already.
 */
export function useDeviceList(selection: DeviceSelection, order: DeviceOrder, whole: boolean): DeviceList {
  const api = useApi();
  const query = useInfiniteQuery({
    queryKey: [...queryKeys.deviceLists, selection] as const,
    queryFn: ({ pageParam, signal }) => readPage(api, selection, pageParam, signal),
    initialPageParam: null as string | null,
    getNextPageParam: (page: DevicePage) => page.next,
    // Comparing 50,000 devices with 50,000 others to find those that are the same would take longer than drawing them.
    structuralSharing: false,
    gcTime: 30_000,
  });
  const { data, error, hasNextPage, isFetching, fetchNextPage, refetch } = query;

  const needsAll = whole || !isServerOrder(order);
  useEffect(() => {
    if (needsAll && hasNextPage && !isFetching && error === null) void fetchNextPage();
  }, [needsAll, hasNextPage, isFetching, error, fetchNextPage]);

  const ordered = useRef<readonly DeviceRow[]>([]);
  const rows = useMemo(() => {
    const listed = data?.pages.flatMap((page) => page.rows) ?? [];
    return isServerOrder(order) ? listed : inOrder(listed, order, ordered.current);
  }, [data, order]);
  useEffect(() => {
    ordered.current = rows;
  }, [rows]);

  return {
    rows,
    error,
    isPending: query.isPending,
    hasMore: hasNextPage,
    isReading: isFetching,
    readMore: () => {
      if (hasNextPage && !isFetching) void fetchNextPage();
    },
    readAgain: () => void refetch(),
  };
}

async function readPage(
  api: ApiClient,
  { filter, online }: DeviceSelection,
  after: string | null,
  signal: AbortSignal,
): Promise<DevicePage> {
  const { body, headers } = await api.exchange("listDevices", {
    query: {
      limit: after === null ? firstPageSize : pageSize,
      ...(after !== null && { after }),
      ...(filter !== "" && { filter }),
      ...(online !== null && { online }),
    },
    signal,
  });
  return { rows: body.map(rowOf), next: nextCursor(headers) };
}

/** The cursor of the next page, from the `Link` header; null at the end of the list. */
export function nextCursor(headers: Headers): string | null {
  for (const link of (headers.get("Link") ?? "").split(/,\s*(?=<)/)) {
    const target = /^\s*<([^>]*)>.*;\s*rel="?next"?/.exec(link)?.[1];
    if (target !== undefined) return new URL(target, "http://localhost").searchParams.get("after");
  }
  return null;
}
