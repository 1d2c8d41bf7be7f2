import type { ApiKey } from "@devmesh/contracts/model/api-key";
import type { Session } from "@devmesh/contracts/model/session";
import { Button, Stack, Text, Title } from "@mantine/core";
import { useState } from "react";
import { useApi } from "../../api/api-context.tsx";
import { queryKeys } from "../../api/query-keys.ts";
import { useReading } from "../../api/use-reading.ts";
import { Card } from "../../components/card.tsx";
import { Confirmation } from "../../components/confirmation.tsx";
import { type Column, DataTable } from "../../components/data-table.tsx";
import { Failure } from "../../components/failure.tsx";
import { RelativeTime } from "../../components/relative-time.tsx";
import { StateBadge } from "../../components/state.tsx";

/** The browsers that are signed in; each can be signed out. */
export function SessionList({ keys }: { readonly keys: readonly ApiKey[] }) {
  const api = useApi();
  const own = api.session?.id;
  const { data, error, refetch } = useReading({
    queryKey: queryKeys.sessions,
    queryFn: ({ signal }) => api.call("listSessions", { signal }),
  });
  const [ended, setEnded] = useState<Session | null>(null);
  const columns: readonly Column<Session>[] = [
    {
      heading: "Browser",
      namesRow: true,
      cell: (session) => (
        <>
          {session.name ?? session.id}{" "}
          {session.id === own && <StateBadge look="good">this browser</StateBadge>}
        </>
      ),
    },
    {
      heading: "Begun with",
      cell: ({ master_key_id }) => keys.find(({ id }) => id === master_key_id)?.name ?? "an unnamed key",
    },
    { heading: "Begun", cell: ({ created_at }) => <RelativeTime at={created_at} /> },
    { heading: "Last used", cell: ({ last_used }) => <RelativeTime at={last_used} /> },
    { heading: "Ends", cell: ({ expires_at }) => <RelativeTime at={expires_at} /> },
    {
      heading: "Actions",
      hidesHeading: true,
      style: { ta: "end" },
      cell: (session) => (
        <Button
          size="compact-xs"
          variant="default"
          aria-label={`End the session ${session.name ?? session.id}`}
          onClick={() => setEnded(session)}
        >
          End
        </Button>
      ),
    },
  ];
  return (
    <Stack gap="sm" p={{ base: 16, sm: 24 }} pt={0}>
      <div>
        <Title order={2}>Sessions</Title>
        <Text size="sm" c="dimmed">
          Browsers that are signed in to this dashboard. None of them keeps a master key.
        </Text>
      </div>
      <Failure error={error} title="The sessions could not be read" onRetry={() => void refetch()} />
      {data !== undefined && data.length > 0 && (
        <Card flush>
          <DataTable label="Sessions" minWidth={760} columns={columns} rows={data} keyOf={({ id }) => id} />
        </Card>
      )}
      {ended !== null && (
        <Confirmation
          title={`End the session ${ended.name ?? ended.id}?`}
          action="End"
          run={async () => {
            await api.call("endSession", { params: { id: ended.id } });
            await refetch();
          }}
          onClose={() => setEnded(null)}
        >
          The browser is signed out within a second.{ended.id === own && " It is this one."}
        </Confirmation>
      )}
    </Stack>
  );
}
