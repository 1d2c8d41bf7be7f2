import type { MeshState } from "@devmesh/contracts/model/mesh-state";
import { Button, Group, ScrollArea, Stack, Table, Text, Title } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";
import { useApi } from "../../api/api-context.tsx";
import { queryKeys } from "../../api/query-keys.ts";
import type { CallResult } from "../../api/route-types.ts";
import { Failure } from "../../components/failure.tsx";
import { RelativeTime } from "../../components/relative-time.tsx";
import { TableHead } from "../../components/table-head.tsx";
import { countText } from "./figures.ts";
import styles from "./mesh.module.css";
import { retryMail } from "./retry-mail.ts";

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
  } = useQuery({
    queryKey: queryKeys.deadMail,
    queryFn: ({ signal }) => api.call("listDeadMail", { signal }),
  });
  const { data: customers } = useQuery({
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

  const emailOf = (id: string | null) => customers?.find((customer) => customer.id === id)?.email;
  return (
    <Stack gap="sm">
      <Group justify="space-between">
        <Title order={2} size="h4">
          Mail given up
        </Title>
        {mails !== undefined && mails.length > 1 && (
          <Button
            size="xs"
            variant="default"
            loading={retry.isPending}
            onClick={() => retry.mutate(mails.map(({ id }) => id))}
          >
            Retry all
          </Button>
        )}
      </Group>
      {error !== null && (
        <Failure
          error={error}
          title="The mail that was given up could not be read"
          onRetry={() => void refetch()}
        />
      )}
      {retry.error !== null && <Failure error={retry.error} title="Not all mail could be queued again" />}
      <Text size="sm" c="dimmed" role="status">
        {retry.data !== undefined &&
          `${retry.data === 1 ? "1 mail is" : `${countText(retry.data)} mails are`} queued again. `}
        {listed === 0 && queues?.dead_mail !== null && "There is none."}
      </Text>
      {mails !== undefined && mails.length > 0 && (
        <ScrollArea>
          <Table miw={640} aria-label="Mail given up">
            <TableHead headings={["Mail", "To", "Tries", "Given up", "Why"]} />
            <Table.Tbody>
              {mails.slice(0, mostShown).map((mail) => (
                <MailRow
                  key={mail.id}
                  mail={mail}
                  to={emailOf(mail.customer_id) ?? mail.customer_id}
                  retrying={retry.isPending}
                  onRetry={() => retry.mutate([mail.id])}
                />
              ))}
            </Table.Tbody>
          </Table>
          {mails.length > mostShown && (
            <Text size="sm" c="dimmed">
              And {countText(mails.length - mostShown)} more.
            </Text>
          )}
        </ScrollArea>
      )}
    </Stack>
  );
}

interface MailRowProps {
  readonly mail: GivenUpMail;
  /** Address, or the customer's id; null if both are unknown. */
  readonly to: string | null;
  readonly retrying: boolean;
  readonly onRetry: () => void;
}

function MailRow({ mail, to, retrying, onRetry }: MailRowProps) {
  const { id, kind, attempts, last_error, failed_at } = mail;
  return (
    <Table.Tr>
      <Table.Td title={id}>{kind ?? "of another release"}</Table.Td>
      <Table.Td>{to ?? "not known"}</Table.Td>
      <Table.Td>{attempts}</Table.Td>
      <Table.Td>
        <RelativeTime at={failed_at} />
      </Table.Td>
      <Table.Td miw="18rem">{last_error}</Table.Td>
      <Table.Td className={styles.action}>
        <Button
          size="compact-xs"
          variant="default"
          disabled={retrying}
          aria-label={`Retry the mail to ${to ?? id}`}
          onClick={onRetry}
        >
          Retry
        </Button>
      </Table.Td>
    </Table.Tr>
  );
}
