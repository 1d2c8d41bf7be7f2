import type { ApiKey } from "@devmesh/contracts/model/api-key";
import { Anchor, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { useApi } from "../../api/api-context.tsx";
import { ApiProblem } from "../../api/api-problem.ts";
import { queryKeys } from "../../api/query-keys.ts";
import { serverNow } from "../../api/server-clock.ts";
import type { Column } from "../../components/data-table.tsx";
import { RelativeTime } from "../../components/relative-time.tsx";
import { maskedSecret, Secret } from "../../components/secret.tsx";
import { ShortListTab } from "../../components/short-list-tab.tsx";
import { Tag } from "../../components/tag.tsx";
import { CreateKey } from "./create-key.tsx";

/** Master and device keys: read, copied, created and deleted. */
export function KeysTab() {
  const api = useApi();
  const query = useQuery({
    queryKey: queryKeys.keys,
    queryFn: ({ signal }) => api.call("listKeys", { signal }),
  });
  const onlyMaster = query.data?.filter(isValidMaster).length === 1;
  return (
    <ShortListTab
      title="Keys"
      noun="key"
      query={query}
      filterPlaceholder="Name, device or key"
      textsOf={textsOfKey}
      none="There are no keys."
      columns={columnsOf(api.key)}
      minWidth={760}
      removal={{
        action: "Delete",
        label: (key) => `Delete the key ${nameOf(key)}`,
        blockedBy: (key) =>
          onlyMaster && isValidMaster(key)
            ? "The last master key cannot be deleted: create another one first"
            : undefined,
        consequence: ({ key }) =>
          "Whoever uses it is refused within a second. This cannot be undone." +
          (key === api.key ? " You are signed in with this key: you will be signed out." : ""),
        run: ({ id }) => api.call("deleteKey", { params: { id } }).catch(explainConflict),
      }}
      creation="Create key"
      creationDialog={(onClose) => <CreateKey onClose={onClose} />}
    />
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

/** The columns of the list in a session with the key `own`. */
function columnsOf(own: string): readonly Column<ApiKey>[] {
  return [
    {
      heading: "Kind",
      cell: ({ access }) => (
        <Tag look={access === "full" ? "strong" : "plain"}>{access === "full" ? "Master" : "Device"}</Tag>
      ),
    },
    {
      heading: "Name",
      cell: (key) => (
        <>
          <Text
            size="sm"
            miw="7rem"
            lineClamp={2}
            title={nameOf(key)}
            {...(key.name === null && { c: "dimmed" })}
          >
            {key.name ?? (key.key === null ? `unnamed, ${key.id}` : "unnamed")}
          </Text>
          {key.key === own && <Tag look="good">signed in</Tag>}
        </>
      ),
    },
    {
      heading: "Key",
      cell: (key) =>
        key.key === null ? (
          <Text size="sm" c="dimmed">
            was shown at its creation
          </Text>
        ) : (
          <Secret secret={key.key} what={`the key ${nameOf(key)}`} />
        ),
    },
    {
      heading: "Device",
      cell: ({ device_id }) =>
        device_id !== null && (
          <Anchor component={Link} href={`/devices/${device_id}`} size="sm" style={{ whiteSpace: "nowrap" }}>
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
          {hasExpired(expires_at) && <Tag look="bad">expired</Tag>} <RelativeTime at={expires_at} />
        </>
      ),
    },
  ];
}
