import type { ApiKey } from "@devmesh/contracts/model/api-key";
import { Anchor, Button, Group, Stack, Text } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { useCallback, useMemo } from "react";
import { Link } from "wouter";
import { useApi } from "../../api/api-context.tsx";
import { ApiProblem } from "../../api/api-problem.ts";
import { queryKeys } from "../../api/query-keys.ts";
import { serverNow } from "../../api/server-clock.ts";
import { useReading } from "../../api/use-reading.ts";
import type { Column } from "../../components/data-table.tsx";
import { Failure } from "../../components/failure.tsx";
import { RelativeTime } from "../../components/relative-time.tsx";
import { maskedSecret, Secret } from "../../components/secret.tsx";
import { shortId } from "../../components/short-id.ts";
import { ShortListTab } from "../../components/short-list-tab.tsx";
import { StateBadge, Tag } from "../../components/state.tsx";
import { CreateKey } from "./create-key.tsx";
import { SessionList } from "./session-list.tsx";

/** Master and device keys: read, copied, created and deleted; and the sessions that master keys began. */
export function KeysTab() {
  const api = useApi();
  // Not in the cache, which reads itself again when a frame comes: it would ask for the master key.
  const revelation = useMutation({ mutationFn: () => api.call("listKeys", { asMaster: true }) });
  const secrets = useMemo(() => new Map(revelation.data?.map(({ id, key }) => [id, key])), [revelation.data]);
  const query = useReading({
    queryKey: queryKeys.keys,
    queryFn: ({ signal }) => api.call("listKeys", { signal }),
    select: useCallback(
      (keys: readonly ApiKey[]) =>
        keys.map((row) => ({ ...row, key: row.key ?? secrets.get(row.id) ?? null })),
      [secrets],
    ),
  });
  const isHidden = ({ id, key }: ApiKey) => key === null && !secrets.has(id);
  const onlyMaster = query.data?.filter(isValidMaster).length === 1;
  const own = api.session?.master_key_id;
  return (
    <Stack gap={0}>
      <ShortListTab
        title="Keys"
        noun="key"
        query={query}
        filterPlaceholder="Name, device or key"
        textsOf={textsOfKey}
        none="There are no keys."
        columns={columnsOf(own, isHidden)}
        minWidth={880}
        removal={{
          action: "Delete",
          label: (key) => `Delete the key ${nameOf(key)}`,
          blockedBy: (key) =>
            onlyMaster && isValidMaster(key)
              ? "The last master key cannot be deleted: create another one first"
              : undefined,
          consequence: ({ id, access }) =>
            "Whoever uses it is refused within a second. This cannot be undone." +
            (access === "full" ? " Sessions that it began end." : "") +
            (id === own ? " Yours is one of them: you will be signed out." : ""),
          run: ({ id }) => api.call("deleteKey", { params: { id } }).catch(explainConflict),
        }}
        actions={
          query.data?.some(isHidden) && (
            <Button variant="default" loading={revelation.isPending} onClick={() => revelation.mutate()}>
              Show the keys
            </Button>
          )
        }
        creation="Create key"
        creationDialog={(onClose) => <CreateKey onClose={onClose} />}
      />
      <Failure error={revelation.error} title="The keys could not be shown" />
      <SessionList keys={query.data ?? []} />
    </Stack>
  );
}

/** What the filter of the list searches. */
export function textsOfKey({ id, key, device_id, name }: ApiKey): readonly (string | null)[] {
  return [name, device_id, id, key];
}

/** How the list shows a key: its name, else its masked secret, else its id. */
function nameOf({ id, key, name }: ApiKey): string {
  return name ?? (key === null ? id : maskedSecret(key));
}

/** Whether a key is one of those of which the server keeps the last. */
function isValidMaster({ access, expires_at }: ApiKey): boolean {
  return access === "full" && !hasExpired(expires_at);
}

function hasExpired(at: string | null): boolean {
  return at !== null && Date.parse(at) <= serverNow();
}

function explainConflict(error: unknown): never {
  if (error instanceof ApiProblem && error.status === 409)
    throw new Error("It is the last master key: create another one first, or nobody could sign in again.");
  throw error;
}

/** The columns of the list in a session that the key `own` began. */
function columnsOf(own: string | undefined, isHidden: (key: ApiKey) => boolean): readonly Column<ApiKey>[] {
  return [
    {
      heading: "Kind",
      cell: ({ access }) => <Tag>{access === "full" ? "Master" : "Device"}</Tag>,
    },
    {
      heading: "Name",
      namesRow: true,
      cell: (key) => (
        <Group gap={8} wrap="nowrap">
          <Text size="sm" lineClamp={2} title={nameOf(key)} {...(key.name === null && { c: "dimmed" })}>
            {key.name ?? "unnamed"}
          </Text>
          {key.id === own && <StateBadge look="good">signed in</StateBadge>}
        </Group>
      ),
    },
    {
      heading: "ID",
      cell: ({ id }) => (
        <Text size="xs" ff="monospace" c="dimmed" title={id}>
          {shortId(id)}
        </Text>
      ),
    },
    {
      heading: "Key",
      cell: (key) =>
        key.key === null ? (
          <Text size="sm" c="dimmed">
            {isHidden(key) ? "hidden" : "was shown at its creation"}
          </Text>
        ) : (
          <Secret secret={key.key} what={`the key ${nameOf(key)}`} />
        ),
    },
    {
      heading: "Device",
      style: { style: { whiteSpace: "nowrap" } },
      cell: ({ device_id }) =>
        device_id !== null && (
          <Anchor component={Link} href={`/devices/${device_id}`} size="sm">
            {device_id}
          </Anchor>
        ),
    },
    { heading: "Created", cell: ({ created_at }) => <RelativeTime at={created_at} /> },
    { heading: "Last used", cell: ({ last_used }) => <RelativeTime at={last_used} /> },
    {
      heading: "Expires",
      cell: ({ expires_at }) => (
        <>
          {hasExpired(expires_at) && <StateBadge look="bad">expired</StateBadge>}{" "}
          <RelativeTime at={expires_at} />
        </>
      ),
    },
  ];
}
