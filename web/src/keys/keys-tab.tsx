import type { ApiKey } from "@devmesh/contracts/model/api-key";
import { ActionIcon, Anchor, Button, Group, ScrollArea, Table, Text, Tooltip } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { Link } from "wouter";
import { useApi } from "../api/api-context.tsx";
import { ApiProblem } from "../api/api-problem.ts";
import { queryKeys } from "../api/query-keys.ts";
import { serverNow } from "../api/server-clock.ts";
import { Confirmation } from "../elements/confirmation.tsx";
import { Failure } from "../elements/failure.tsx";
import { FilterInput } from "../elements/filter-input.tsx";
import { Icon } from "../elements/icon.tsx";
import { MoreRows, rowStep } from "../elements/more-rows.tsx";
import { Page } from "../elements/page.tsx";
import { RelativeTime } from "../elements/relative-time.tsx";
import { Secret } from "../elements/secret.tsx";
import { TableHead } from "../elements/table-head.tsx";
import { Tag } from "../elements/tag.tsx";
import { useFilterAddress } from "../elements/use-filter-address.ts";
import { Waiting } from "../elements/waiting.tsx";
import { CreateKey } from "./create-key.tsx";
import { matchingKeys } from "./matching-keys.ts";

/** Keys among which one is found without a filter. */
const fewKeys = 10;

/** Master and device keys: read, copied, made and deleted. */
export function KeysTab() {
  const api = useApi();
  const [creating, create] = useDisclosure(false);
  const [deleted, setDeleted] = useState<ApiKey | null>(null);
  const { data, error, isPending, refetch } = useQuery({
    queryKey: queryKeys.keys,
    queryFn: ({ signal }) => api.call("listKeys", { signal }),
  });
  const [filter, setFilter] = useFilterAddress();
  const [most, setMost] = useState(rowStep);
  const matching = useMemo(() => matchingKeys(data ?? [], filter), [data, filter]);
  const onlyMaster = data?.filter(({ access }) => access === "full").length === 1;
  return (
    <Page
      title="Keys"
      actions={
        <Button leftSection={<Icon name="add" size={16} />} onClick={create.open}>
          Create key
        </Button>
      }
    >
      {error !== null && (
        <Failure error={error} title="The keys could not be read" onRetry={() => void refetch()} />
      )}
      {isPending && <Waiting />}
      {data !== undefined && (data.length > fewKeys || filter !== "") && (
        <Group gap="sm" justify="space-between">
          <FilterInput
            label="Filter keys"
            placeholder="Name, device or key"
            filter={filter}
            onFilter={setFilter}
          />
          <Text size="sm" c="dimmed" role="status">
            {matching.length === 1 ? "1 key" : `${matching.length.toLocaleString("en")} keys`}
          </Text>
        </Group>
      )}
      {data !== undefined && matching.length === 0 && (
        <Text c="dimmed" py="xl" ta="center">
          No key matches.
        </Text>
      )}
      {matching.length > 0 && (
        <ScrollArea>
          <Table miw={760} aria-label="Keys" highlightOnHover>
            <TableHead headings={["Kind", "Name", "Key", "Device", "Created", "Last used", "Expires"]} />
            <Table.Tbody>
              {matching.slice(0, most).map((key) => (
                <KeyRow
                  key={key.id}
                  apiKey={key}
                  own={key.key === api.key}
                  last={onlyMaster && key.access === "full"}
                  onDelete={() => setDeleted(key)}
                />
              ))}
            </Table.Tbody>
          </Table>
        </ScrollArea>
      )}
      <MoreRows what="keys" shown={most} total={matching.length} onMore={() => setMost(most + rowStep)} />
      {creating && <CreateKey onClose={create.close} />}
      {deleted !== null && (
        <DeleteKey apiKey={deleted} own={deleted.key === api.key} onClose={() => setDeleted(null)} />
      )}
    </Page>
  );
}

interface KeyRowProps {
  readonly apiKey: ApiKey;
  /** It is the key that is signed in. */
  readonly own: boolean;
  /** It is the only master key. */
  readonly last: boolean;
  readonly onDelete: () => void;
}

function KeyRow({ apiKey, own, last, onDelete }: KeyRowProps) {
  const { id, key, access, device_id, name, created_at, last_used, expires_at } = apiKey;
  const expired = expires_at !== null && Date.parse(expires_at) <= serverNow();
  const called = name ?? id;
  return (
    <Table.Tr>
      <Table.Td>
        <Tag look={access === "full" ? "strong" : "plain"}>{access === "full" ? "Master" : "Device"}</Tag>
      </Table.Td>
      <Table.Td>
        <Text size="sm" miw="7rem" lineClamp={2} title={name ?? id} {...(name === null && { c: "dimmed" })}>
          {name ?? "unnamed"}
        </Text>
        {own && <Tag look="good">signed in</Tag>}
      </Table.Td>
      <Table.Td>
        {key === null ? (
          <Text size="sm" c="dimmed">
            was shown when it was made
          </Text>
        ) : (
          <Secret secret={key} what={`the key ${called}`} />
        )}
      </Table.Td>
      <Table.Td>
        {device_id !== null && (
          <Anchor component={Link} href={`/devices/${device_id}`} size="sm" style={{ whiteSpace: "nowrap" }}>
            {device_id}
          </Anchor>
        )}
      </Table.Td>
      <Table.Td>
        <RelativeTime at={created_at} />
      </Table.Td>
      <Table.Td>
        <RelativeTime at={last_used} />
      </Table.Td>
      <Table.Td>
        {expired && (
          <>
            <Tag look="bad">expired</Tag>{" "}
          </>
        )}
        <RelativeTime at={expires_at} />
      </Table.Td>
      <Table.Td ta="end">
        <Tooltip label={last ? "The last master key cannot be deleted" : "Delete"}>
          <ActionIcon variant="subtle" color="red" aria-label={`Delete the key ${called}`} onClick={onDelete}>
            <Icon name="delete" size={16} />
          </ActionIcon>
        </Tooltip>
      </Table.Td>
    </Table.Tr>
  );
}

function DeleteKey({
  apiKey,
  own,
  onClose,
}: {
  readonly apiKey: ApiKey;
  readonly own: boolean;
  readonly onClose: () => void;
}) {
  const api = useApi();
  const queries = useQueryClient();
  const deletion = useMutation({
    mutationFn: () => api.call("deleteKey", { params: { id: apiKey.id } }),
    onSuccess: async () => {
      await queries.invalidateQueries({ queryKey: queryKeys.keys });
      onClose();
    },
  });
  const { error } = deletion;
  const isLast = error instanceof ApiProblem && error.status === 409;
  return (
    <Confirmation
      title={`Delete the key ${apiKey.name ?? apiKey.id}?`}
      action="Delete"
      running={deletion.isPending}
      error={
        isLast
          ? new Error("It is the last master key: create another one first, or nobody could sign in again.")
          : error
      }
      onConfirm={() => deletion.mutate()}
      onClose={onClose}
    >
      <Text size="sm">
        Whoever uses it is refused within a second. This cannot be undone.
        {own && " You are signed in with this key: you will be signed out."}
      </Text>
    </Confirmation>
  );
}
