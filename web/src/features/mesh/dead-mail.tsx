import type { MeshState } from "@devmesh/contracts/model/mesh-state";
import { Button, Text } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";
import type { ApiClient } from "../../api/api-client.ts";
import { useApi } from "../../api/api-context.tsx";
import { ApiProblem } from "../../api/api-problem.ts";
import { queryKeys } from "../../api/query-keys.ts";
import type { CallResult } from "../../api/route-types.ts";
import { useReading } from "../../api/use-reading.ts";
import { Card } from "../../components/card.tsx";
import { type Column, DataTable } from "../../components/data-table.tsx";
import { Failure } from "../../components/failure.tsx";
import { countText } from "../../components/number-text.ts";
import { RelativeTime } from "../../components/relative-time.tsx";
import { Waiting } from "../../components/waiting.tsx";

type GivenUpMail = CallResult<"listDeadMail">[number];

interface DeadMailProps {
  /** The queues in the newest reading; null before the first. */
  readonly queues: MeshState["queues"] | null;
}

/** Maximum of shown mails: after an outage there can be thousands, all for one reason. */
const mostShown = 200;

/** Mail that was given up, and its retry. */
export function DeadMail({ queues }: DeadMailProps) {
  const api = useApi();
  const queries = useQueryClient();
  const {
    data: mails,
    error,
    refetch,
  } = useReading({
    queryKey: queryKeys.deadMail,
    queryFn: ({ signal }) => api.call("listDeadMail", { signal }),
  });
  const { data: customers } = useReading({
    queryKey: queryKeys.customers,
    queryFn: ({ signal }) => api.call("listCustomers", { signal }),
    enabled: mails !== undefined && mails.length > 0,
  });
  const listed = mails?.length;
  useEffect(() => {
    const counted = queues?.dead_mail ?? null;
    if (counted !== null && listed !== undefined && counted !== listed)
      void queries.invalidateQueries({ queryKey: queryKeys.deadMail });
  }, [queues, listed, queries]);
  const retry = useMutation({
    mutationFn: (ids: readonly string[]) => retryMail(api, ids),
    onSettled: () => queries.invalidateQueries({ queryKey: queryKeys.deadMail }),
  });

  /** Address, or the customer's id; null if both are unknown. */
  const addressee = ({ to, customer_id }: GivenUpMail) =>
    to ?? customers?.find(({ id }) => id === customer_id)?.email ?? customer_id;
  const columns: readonly Column<GivenUpMail>[] = [
    { heading: "Mail", cell: (mail) => <span title={mail.id}>{kindOf(mail)}</span> },
    { heading: "To", namesRow: true, cell: (mail) => addressee(mail) ?? "not known" },
    { heading: "Tries", cell: ({ attempts }) => attempts },
    { heading: "Failed", cell: ({ failed_at }) => <RelativeTime at={failed_at} /> },
    { heading: "Why", cell: ({ last_error }) => last_error },
    {
      heading: "Actions",
      hidesHeading: true,
      style: { ta: "end" },
      cell: (mail) => (
        <Button
          size="compact-xs"
          variant="default"
          disabled={retry.isPending}
          aria-label={`Retry the mail to ${addressee(mail) ?? mail.id}`}
          onClick={() => retry.mutate([mail.id])}
        >
          Retry
        </Button>
      ),
    },
  ];
  return (
    <Card
      title="Undelivered mail"
      actions={
        mails !== undefined &&
        mails.length > 1 && (
          <Button
            size="xs"
            variant="default"
            loading={retry.isPending}
            onClick={() => retry.mutate(mails.map(({ id }) => id))}
          >
            Retry all
          </Button>
        )
      }
    >
      <Failure error={error} title="The undelivered mail could not be read" onRetry={() => void refetch()} />
      {mails === undefined && error === null && <Waiting rows={1} />}
      <Failure error={retry.error} title="Not all mail could be queued again" />
      <Text size="sm" c="dimmed" role="status">
        {retry.data !== undefined &&
          `${retry.data === 1 ? "1 mail is" : `${countText(retry.data)} mails are`} queued again. `}
        {listed === 0 && queues?.dead_mail !== null && "None."}
      </Text>
      {mails !== undefined && mails.length > 0 && (
        <DataTable
          label="Undelivered mail"
          minWidth={640}
          columns={columns}
          rows={mails.slice(0, mostShown)}
          keyOf={({ id }) => id}
        />
      )}
      {mails !== undefined && mails.length > mostShown && (
        <Text size="sm" c="dimmed">
          And {countText(mails.length - mostShown)} more.
        </Text>
      )}
    </Card>
  );
}

function kindOf({ kind, to }: GivenUpMail): string {
  return kind ?? (to == null ? "of another release" : "alerts");
}

/**
 * Queues given-up mail again, one after the other, and returns how many; mail that another user queued meanwhile
 * counts, too. After all were tried, rejects with the first failure.
 */
export async function retryMail(api: ApiClient, ids: readonly string[]): Promise<number> {
  const failures: unknown[] = [];
  for (const id of ids) {
    try {
      await api.call("retryDeadMail", { params: { id } });
    } catch (error) {
      const gone = error instanceof ApiProblem && error.reason === "mail_not_found";
      if (!gone) failures.push(error);
    }
  }
  if (failures.length > 0) throw failures[0];
  return ids.length;
}
