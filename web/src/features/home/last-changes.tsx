import type { MeshChange } from "@devmesh/contracts/model/mesh-change";
import { Anchor, Button, Group, Text } from "@mantine/core";
import { useQueries, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "wouter";
import { useApi } from "../../api/api-context.tsx";
import { queryKeys } from "../../api/query-keys.ts";
import { Card } from "../../components/card.tsx";
import { type Column, DataTable } from "../../components/data-table.tsx";
import { Failure } from "../../components/failure.tsx";
import { RelativeTime } from "../../components/relative-time.tsx";
import { authorOf, deedOf, furtherChanges, shortId } from "./change-words.ts";

/** How often the changes are read again, in milliseconds. */
const changesMs = 15_000;
/** Number of changes shown at first. */
const shownAtFirst = 8;

/** Who changed what last, with links to the key and to what is still there. */
export function LastChanges() {
  const api = useApi();
  const [whole, setWhole] = useState(false);
  const {
    data: changes,
    error,
    refetch,
  } = useQuery({
    queryKey: queryKeys.meshChanges,
    queryFn: ({ signal }) => api.call("listMeshChanges", { signal }),
    refetchInterval: changesMs,
    // No frame announces changes: they are read again when the page is opened.
    staleTime: 0,
  });
  const shown = (whole ? changes : changes?.slice(0, shownAtFirst)) ?? [];
  const devices = [...new Set(shown.flatMap(deviceOf))];
  const existing = useQueries({
    queries: devices.map((id) => ({
      queryKey: queryKeys.device(id),
      queryFn: ({ signal }: { readonly signal: AbortSignal }) =>
        api.call("readDevice", { params: { id }, signal }),
    })),
    combine: (found) => new Set(devices.filter((_, nth) => found[nth]?.data !== undefined)),
  });
  const columns: readonly Column<MeshChange>[] = [
    { heading: "When", cell: ({ at }) => <RelativeTime at={at} /> },
    {
      heading: "Who",
      cell: ({ by }) => {
        const { text, href } = authorOf(by);
        return (
          <Anchor component={Link} href={href} title={by.id} size="sm" underline="always">
            {text}
          </Anchor>
        );
      },
    },
    {
      heading: "What",
      cell: (change) => (
        <>
          {deedOf(change)} <ChangedThing change={change} isThere={(id) => existing.has(id)} />
          {furtherChanges(change)}
        </>
      ),
      style: { miw: "14rem" },
    },
  ];
  return (
    <Card title="Last changes">
      <Failure error={error} title="The last changes could not be read" onRetry={() => void refetch()} />
      {changes?.length === 0 && (
        <Text size="sm">
          None yet. Who creates, changes or deletes devices, keys and customers is listed here.
        </Text>
      )}
      {changes !== undefined && changes.length > 0 && (
        <DataTable
          label="Last changes"
          minWidth={480}
          columns={columns}
          rows={shown}
          keyOf={({ at, by, operation }) => [at, by.kind, by.id, operation].join(" ")}
        />
      )}
      {changes !== undefined && changes.length > shownAtFirst && !whole && (
        <Group>
          <Button size="xs" variant="default" onClick={() => setWhole(true)}>
            Show all {changes.length}
          </Button>
        </Group>
      )}
    </Card>
  );
}

/** The device that exists after a change. */
function deviceOf({ target, operation }: MeshChange): string[] {
  return target?.kind === "device" && operation !== "deleteDevice" ? [target.id] : [];
}

interface ChangedThingProps {
  readonly change: MeshChange;
  /** Whether a device of that id exists, as far as it is known. */
  readonly isThere: (deviceId: string) => boolean;
}

/** The id of what was changed; of a device that is still there, a link to it. */
function ChangedThing({ change: { target, operation }, isThere }: ChangedThingProps) {
  if (target === null) return null;
  if (target.kind !== "device") return <span title={target.id}>{shortId(target.id)}</span>;
  if (operation === "deleteDevice" || !isThere(target.id)) return target.id;
  return (
    <Anchor component={Link} href={`/devices/${target.id}`} size="sm" underline="always">
      {target.id}
    </Anchor>
  );
}
