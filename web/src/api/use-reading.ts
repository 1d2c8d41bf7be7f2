import {
  hashKey,
  type QueryKey,
  type UseQueryOptions,
  type UseQueryResult,
  useQuery,
  useQueryClient,
} from "@tanstack/react-query";
import { useState } from "react";
import { ApiProblem, mayPass } from "./api-problem.ts";

/** Interval at which failed reads are repeated while they are shown, in milliseconds. */
const repeatMs = 10_000;

/** What is read of the server, as a view shows it. */
export interface Reading<T> {
  /** The newest that was read, also after a failure; undefined for nothing yet. */
  readonly data: T | undefined;
  /** Why the last tries failed, until one succeeds. */
  readonly error: Error | null;
  /** There is neither data nor an error. */
  readonly isPending: boolean;
  readonly isFetching: boolean;
  readonly dataUpdatedAt: number;
  readonly refetch: () => Promise<unknown>;
}

/** `useQuery`, except that a failure is shown while it is repeated, not after the last repeat. */
export function useReading<T, D = T>(options: UseQueryOptions<T, Error, D>): Reading<D> {
  const query = useQuery(options);
  const error = useShownError(query, options.queryKey);
  const queries = useQueryClient();
  const { data, isFetching, dataUpdatedAt } = query;
  return {
    data,
    error,
    isPending: query.isPending && error === null,
    isFetching,
    dataUpdatedAt,
    async refetch() {
      // A repeat that waits would otherwise keep its delay.
      await queries.cancelQueries({ queryKey: options.queryKey, exact: true });
      await query.refetch();
    },
  };
}

/** When a read is repeated after its last failure: what a view shows as failed comes back by itself. */
export function repeatInterval({ error }: { readonly error: Error | null }): number | false {
  return error !== null && mayPass(error) && repeatMs;
}

/** A query as far as its failures go. */
type Repeated = Pick<UseQueryResult, "error" | "failureReason" | "failureCount" | "isFetching" | "data">;

/** The failure that a view shows: it stays while the query is repeated, until it succeeds. */
export function useShownError(query: Repeated, queryKey: QueryKey): Error | null {
  const hash = hashKey(queryKey);
  const [last, setLast] = useState<{ readonly hash: string; readonly error: Error } | null>(null);
  const known = last?.hash === hash ? last.error : null;
  const current = query.error ?? (isLasting(query) ? query.failureReason : null);
  const error = current ?? (query.isFetching || query.data === undefined ? known : null);
  if (error !== known) setLast(error && { hash, error });
  return error;
}

/** A first failure may be a restart, but no answer in time has taken 2.5 s already. */
function isLasting({ failureReason, failureCount }: Repeated): boolean {
  return failureCount > 1 || (failureReason instanceof ApiProblem && failureReason.status === 504);
}
