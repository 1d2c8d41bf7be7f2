import type { DataRecord } from "@devmesh/contracts/model/data-record";
import type { Device } from "@devmesh/contracts/model/device";
import type { Notification } from "@devmesh/contracts/model/notification";
import { useQueryClient } from "@tanstack/react-query";
import { useMemo } from "react";
import { useApi } from "../../../api/api-context.tsx";
import { queryKeys } from "../../../api/query-keys.ts";
import { useReading } from "../../../api/use-reading.ts";
import { recordsIn } from "../../data/record-selection.ts";
import { type DeviceValue, valuesOf, withNewer } from "./device-values.ts";

/** The values of a device, and what keeps them current. */
interface UsedValues {
  /** Undefined before they are read. */
  readonly values: readonly DeviceValue[] | undefined;
  readonly error: unknown;
  readonly readAgain: () => void;
  /** Takes frames of a stream with the records of the device. */
  readonly take: (frames: readonly Notification[]) => void;
}

/** What a device published last on each topic. */
export function useDeviceValues({ id, shadow: { tags } }: Device): UsedValues {
  const api = useApi();
  const queries = useQueryClient();
  const queryKey = queryKeys.latest(id);
  const { data, error, refetch } = useReading({
    queryKey,
    queryFn: ({ signal }) => api.call("readLatest", { params: { id }, signal }),
    // Only the page of a device follows its records.
    staleTime: 0,
  });
  const values = useMemo(() => data && valuesOf(id, tags, data), [id, tags, data]);
  return {
    values,
    error,
    readAgain: () => void refetch(),
    take: (frames) =>
      queries.setQueryData<readonly DataRecord[]>(
        queryKey,
        (held) => held && withNewer(held, recordsIn(frames)),
      ),
  };
}
