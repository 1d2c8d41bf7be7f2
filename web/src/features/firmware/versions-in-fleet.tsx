import type { DeviceFacets, FacetValue } from "@devmesh/contracts/model/device-facets";
import type { Firmware } from "@devmesh/contracts/model/firmware";
import { Anchor, Text } from "@mantine/core";
import { Link } from "wouter";
import type { Reading } from "../../api/use-reading.ts";
import { Card } from "../../components/card.tsx";
import { type Column, DataTable } from "../../components/data-table.tsx";
import { Failure } from "../../components/failure.tsx";
import { countText, shareText } from "../../components/number-text.ts";
import { Waiting } from "../../components/waiting.tsx";
import { devicesWhere } from "../devices/shared/device-conditions.ts";

/** Versions that are listed. */
const mostListed = 20;

/** Properties of {@link VersionsInFleet}. */
interface VersionsInFleetProps {
  readonly files: readonly Firmware[];
  readonly facets: Reading<DeviceFacets>;
}

/** The versions that devices report, the most frequent first, and the file of each. */
export function VersionsInFleet({
  files,
  facets: { data, error, isPending, refetch },
}: VersionsInFleetProps) {
  const versions = data?.facets.version ?? [];
  const rest =
    (data?.others.version ?? 0) + versions.slice(mostListed).reduce((sum, { count }) => sum + count, 0);
  return (
    <Card title="Versions that the fleet reports" flush>
      <Failure error={error} title="The versions could not be counted" onRetry={() => void refetch()} />
      {isPending && <Waiting rows={4} />}
      {data !== undefined && versions.length === 0 && (
        <Text size="sm" c="dimmed" p="md">
          There are no devices yet.
        </Text>
      )}
      {data !== undefined && versions.length > 0 && (
        <DataTable
          label="Versions that the fleet reports"
          minWidth={420}
          columns={columnsOf(files, data.total)}
          rows={versions.slice(0, mostListed)}
          keyOf={({ value }) => value ?? ""}
        />
      )}
      {rest > 0 && (
        <Text size="sm" c="dimmed" p="md">
          {countText(rest)} devices report others.
        </Text>
      )}
    </Card>
  );
}

function columnsOf(files: readonly Firmware[], total: number): readonly Column<FacetValue>[] {
  return [
    {
      heading: "Version",
      namesRow: true,
      cell: ({ value }) => (
        <Anchor
          component={Link}
          size="sm"
          c="var(--text)"
          href={devicesWhere({ version: { in: [value] } })}
          {...(value !== null && { ff: "monospace" })}
        >
          {value ?? "not reported"}
        </Anchor>
      ),
    },
    { heading: "Devices", style: { ta: "end" }, cell: ({ count }) => countText(count) },
    { heading: "Share", style: { ta: "end" }, cell: ({ count }) => shareText(count / Math.max(1, total)) },
    {
      heading: "File",
      cell: ({ value }) => {
        const names = files.filter(({ reported_as }) => reported_as === value).map(({ name }) => name);
        return (
          <Text span size="sm" {...(names.length === 0 && { c: "dimmed" })}>
            {names.length === 0 ? "none" : names.join(", ")}
          </Text>
        );
      },
    },
  ];
}
