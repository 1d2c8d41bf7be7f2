import type { ApiKey } from "@devmesh/contracts/model/api-key";
import { ActionIcon, Anchor, Table, Text, Tooltip } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Trash2 } from "lucide-react";
import { useState } from "react";
import { Link } from "wouter";
import { useApi } from "../../api/api-context.tsx";
import { ApiProblem } from "../../api/api-problem.ts";
import { queryKeys } from "../../api/query-keys.ts";
import { serverNow } from "../../api/server-clock.ts";
import { Confirmation } from "../../components/confirmation.tsx";
import { RelativeTime } from "../../components/relative-time.tsx";
import { Secret } from "../../components/secret.tsx";
import { ShortListTab } from "../../components/short-list-tab.tsx";
import { Tag } from "../../components/tag.tsx";
import { CreateKey } from "./create-key.tsx";
import { matchingKeys } from "./matching-keys.ts";

const headings = ["Kind", "Name", "Key", "Device", "Created", "Last used", "Expires"];

/** Master and device keys: read, copied, created and deleted. */
export function KeysTab() {
  const api = useApi();
  const [creating, create] = useDisclosure(false);
  const [deleted, setDeleted] = useState<ApiKey | null>(null);
  const query = useQuery({
    queryKey: queryKeys.keys,
    queryFn: ({ signal }) => api.call("listKeys", { signal }),
  });
  const onlyMaster = query.data?.filter(({ access }) => access === "full").length === 1;
  return (
    <ShortListTab
      title="Keys"
      noun="key"
      query={query}
      filterPlaceholder="Name, device or key"
      find={matchingKeys}
      none="No key matches."
      action="Create key"
      onAction={create.open}
      headings={headings}
      minWidth={760}
      row={(key) => (
        <KeyRow
          key={key.id}
          apiKey={key}
          own={key.key === api.key}
          last={onlyMaster && key.access === "full"}
          onDelete={() => setDeleted(key)}
        />
      )}
      dialogs={
        <>
          {creating && <CreateKey onClose={create.close} />}
          {deleted !== null && (
            <DeleteKey apiKey={deleted} own={deleted.key === api.key} onClose={() => setDeleted(null)} />
          )}
        </>
      }
    />
  );
}

interface KeyRowProps {
  readonly apiKey: ApiKey;
  /** The key of this session. */
  readonly own: boolean;
  /** The only master key. */
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
            was shown at its creation
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
            <Trash2 size={16} />
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
