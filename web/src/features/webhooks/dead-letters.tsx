import type { DeadDelivery, Webhook } from "@devmesh/contracts/model/webhook";
import { Button, Text } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { useApi } from "../../api/api-context.tsx";
import { Card } from "../../components/card.tsx";
import { CodeBlock } from "../../components/code-block.tsx";
import { type Column, DataTable } from "../../components/data-table.tsx";
import { Dialog } from "../../components/dialog.tsx";
import { EmptyState } from "../../components/empty-state.tsx";
import { Failure } from "../../components/failure.tsx";
import { countText } from "../../components/number-text.ts";
import { RelativeTime } from "../../components/relative-time.tsx";
import { showToast } from "../../components/toast.tsx";
import { mostDead, useDeadDeliveries, useWebhooksAgain } from "./use-webhooks.ts";

/** Events that a webhook has given up; they can be sent again. */
export function DeadLetters({ webhook: { id, enabled } }: { readonly webhook: Webhook }) {
  const api = useApi();
  const readAgain = useWebhooksAgain();
  const { data, error, refetch } = useDeadDeliveries(id);
  const [shown, setShown] = useState<DeadDelivery | null>(null);
  const sending = useMutation({
    mutationFn: async (dead: string | null) => {
      if (dead === null) return (await api.call("retryDeadDeliveries", { params: { id } })).queued;
      await api.call("retryDeadDelivery", { params: { id, dead } });
      return 1;
    },
    onSuccess: (queued) =>
      showToast({ title: queued === 1 ? "1 event waits again" : `${countText(queued)} events wait again` }),
    onSettled: readAgain,
  });
  const columns: readonly Column<DeadDelivery>[] = [
    {
      heading: "Event",
      namesRow: true,
      cell: (dead) => (
        <Button
          variant="subtle"
          size="compact-sm"
          aria-label={`${dead.type}, ${dead.event_id}`}
          onClick={() => setShown(dead)}
        >
          {dead.type}
        </Button>
      ),
    },
    {
      heading: "About",
      cell: ({ event: { subject } }) => (
        <Text size="xs" ff="monospace" style={{ overflowWrap: "anywhere" }}>
          {subject ?? "–"}
        </Text>
      ),
    },
    { heading: "Attempts", style: { ta: "end" }, cell: ({ attempts }) => countText(attempts) },
    {
      heading: "Reason",
      cell: ({ error: reason }) => (
        <Text size="xs" lineClamp={2} style={{ overflowWrap: "anywhere" }}>
          {reason}
        </Text>
      ),
    },
    { heading: "Given up", cell: ({ failed_at }) => <RelativeTime at={failed_at} /> },
    {
      heading: "Actions",
      hidesHeading: true,
      style: { ta: "end" },
      cell: (dead) => (
        <Button
          size="compact-xs"
          variant="default"
          aria-label={`Send again ${dead.event_id}`}
          disabled={!enabled}
          loading={sending.isPending && sending.variables === dead.id}
          onClick={() => sending.mutate(dead.id)}
        >
          Send again
        </Button>
      ),
    },
  ];
  return (
    <Card
      title="Given up"
      flush
      actions={
        data !== undefined &&
        data.length > 1 && (
          <Button
            size="xs"
            variant="default"
            disabled={!enabled}
            loading={sending.isPending && sending.variables === null}
            onClick={() => sending.mutate(null)}
          >
            Send all again
          </Button>
        )
      }
    >
      <Failure error={error} title="What was given up could not be read" onRetry={() => void refetch()} />
      <Failure error={sending.error} title="It was not sent again" />
      {data?.length === 0 && (
        <EmptyState title="No event was given up">
          An event that the receiver does not take within 24 h is kept here for 30 days.
        </EmptyState>
      )}
      {data !== undefined && data.length > 0 && (
        <DataTable
          label="Events that were given up"
          minWidth={640}
          columns={columns}
          rows={data}
          keyOf={({ id: dead }) => dead}
        />
      )}
      {data !== undefined && data.length >= mostDead && (
        <Text size="xs" c="dimmed" p="sm">
          The oldest {countText(mostDead)}.
        </Text>
      )}
      {shown !== null && (
        <Dialog title={shown.type} size="lg" onClose={() => setShown(null)}>
          <CodeBlock label="The event, as it is sent" maxHeight="60dvh">
            {JSON.stringify(shown.event, null, 2)}
          </CodeBlock>
        </Dialog>
      )}
    </Card>
  );
}
