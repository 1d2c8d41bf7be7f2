import { printConditionText } from "@devmesh/contracts/model/condition-text";
import { useInfiniteQuery } from "@tanstack/react-query";
import { useEffect, useMemo, useRef } from "react";
import type { ApiClient } from "../../../api/api-client.ts";
import { useApi } from "../../../api/api-context.tsx";
import { nextCursor } from "../../../api/next-page.ts";
import { queryKeys } from "../../../api/query-keys.ts";
import { repeatInterval, useShownError } from "../../../api/use-reading.ts";
import type { DeviceConditions, DevicePage, DeviceSelection } from "../shared/device-lists.ts";
import { type DeviceTableRow, rowOf } from "../shared/device-row.ts";
import { type DeviceOrder, inOrder, serverOrderOf } from "./device-order.ts";

/** Number of devices in the first page, which should be fast, and in each further one. */
const firstPageSize = 100;
const pageSize = 500;

/** Number of pages up to which a list with a failure is read again by itself: a long one costs the server much. */
const fewPages = 3;

/** The devices of a selection read so far, in an order. */
export interface DeviceList {
  readonly rows: readonly DeviceTableRow[];
  readonly error: unknown;
  /** Nothing is there yet. */
  readonly isPending: boolean;
  /** There are more than are read. */
  readonly hasMore: boolean;
  /** Number of devices in the list, unread ones included; null if it is not known. */
  readonly total: number | null;
  readonly isReading: boolean;
  readonly readMore: () => void;
  readonly readAgain: () => void;
}

/**
 * Reads devices a page at a time. An order that the server does not have, or `whole`, needs them all, which are then
 * read one page after the other while what is there is shown already. Of a whole list, rows move when their values do.
 */
export function useDeviceList(conditions: DeviceConditions, order: DeviceOrder, whole: boolean): DeviceList {
  const api = useApi();
  const selection: DeviceSelection = {
    ...conditions,
    order: serverOrderOf(order) ?? "desc",
  };
  const queryKey = [...queryKeys.deviceLists, selection] as const;
  const query = useInfiniteQuery({
    queryKey,
    queryFn: ({ pageParam, signal }) => readPage(api, selection, pageParam, signal),
    initialPageParam: null as string | null,
    getNextPageParam: (page: DevicePage) => page.next,
    // Comparing 50,000 devices with 50,000 others to find those that are the same would take longer than drawing them.
    structuralSharing: false,
    gcTime: 30_000,
    refetchInterval: ({ state }) => (state.data?.pages.length ?? 0) <= fewPages && repeatInterval(state),
  });
  const error = useShownError(query, queryKey);
  const { data, hasNextPage, isFetching, fetchNextPage, refetch } = query;

  const needsAll = whole || serverOrderOf(order) === null;
  useEffect(() => {
    if (needsAll && hasNextPage && !isFetching && error === null) void fetchNextPage();
  }, [needsAll, hasNextPage, isFetching, error, fetchNextPage]);

  const ordered = useRef<readonly DeviceTableRow[]>([]);
  const rows = useMemo(() => {
    const listed = data?.pages.flatMap((page) => page.rows) ?? [];
    // A page is in the order of the values at its reading, which those of the pages after it follow.
    const isAsListed = order.column === "created" || (hasNextPage && serverOrderOf(order) !== null);
    return isAsListed ? listed : inOrder(listed, order, ordered.current);
  }, [data, order, hasNextPage]);
  useEffect(() => {
    ordered.current = rows;
  }, [rows]);

  // Later pages count the devices that were created meanwhile.
  const counted = data?.pages.at(-1)?.total ?? null;
  return {
    rows,
    total: data === undefined ? null : hasNextPage ? counted && Math.max(counted, rows.length) : rows.length,
    error,
    isPending: query.isPending && error === null,
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
  { condition, pointers, order }: DeviceSelection,
  after: string | null,
  signal: AbortSignal,
): Promise<DevicePage> {
  const where = printConditionText(condition);
  const { body, headers } = await api.exchange("listDevices", {
    query: {
      limit: after === null ? firstPageSize : pageSize,
      ...(after !== null && { after }),
      ...(order !== "asc" && { order }),
      ...(where !== "" && { where: condition }),
    },
    signal,
  });
  const total = headers.get("Total-Count");
  return {
    rows: body.map((device) => rowOf(device, pointers)),
    next: nextCursor(headers),
    total: total === null ? null : Number(total),
  };
}
