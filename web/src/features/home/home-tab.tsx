import { type FleetSummary, silentHours } from "@devmesh/contracts/model/fleet";
import { Anchor, Group, NativeSelect, Progress, SimpleGrid, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { Link } from "wouter";
import { useApi } from "../../api/api-context.tsx";
import { queryKeys } from "../../api/query-keys.ts";
import { Card } from "../../components/card.tsx";
import { type Column, DataTable } from "../../components/data-table.tsx";
import { Failure } from "../../components/failure.tsx";
import { countText, rateText } from "../../components/number-text.ts";
import { Page } from "../../components/page.tsx";
import { RelativeTime } from "../../components/relative-time.tsx";
import { Stat, StatStrip } from "../../components/stat-strip.tsx";
import { diagnosisDetail } from "../devices/shared/diagnosis-words.ts";
import { useMesh } from "../mesh/mesh-stream.ts";
import { figuresTogether, type MeshObservation } from "../mesh/observation.ts";
import { Course, type CourseName } from "./course.tsx";
import { firmwareShares } from "./fleet-facts.ts";
import { LastChanges } from "./last-changes.tsx";

/** How often the course of the day is read again, in milliseconds: a minute is added to it each minute. */
const historyMs = 60_000;
/** How often logins of unknown ids are read, in milliseconds. */
const unknownMs = 15_000;

/** What matters now: the fleet, its traffic, what is refused, and whether the services run. */
export function HomeTab() {
  const api = useApi();
  const { observation } = useMesh();
  const { data: history = [] } = useQuery({
    queryKey: queryKeys.meshHistory,
    queryFn: ({ signal }) => api.call("readMeshHistory", { signal }),
    refetchInterval: historyMs,
  });
  const now = observation === null ? null : figuresTogether(observation);
  const queues = observation?.queues;
  const waiting = queues === undefined ? null : sumOf(queues.data, queues.rpc_bridge);
  const fleet = observation?.fleet ?? null;
  const online = now?.devicesOnline ?? null;

  const card = (name: CourseName, term: string, value: ReactNode, href: string, of?: string) => (
    <Stat term={term} value={value} href={href} {...(of !== undefined && { unit: of })}>
      <Course history={history} name={name} />
    </Stat>
  );
  const rate = (perSecond: number | null | undefined) => (perSecond == null ? "–" : rateText(perSecond));
  return (
    <Page title="Home">
      <Health observation={observation} />
      <StatStrip label="Now">
        {card(
          "devices_online",
          "Devices online",
          online === null ? "–" : countText(online),
          "/devices?online=true",
          fleet === null ? undefined : `of ${countText(fleet.devices)}`,
        )}
        {card("records", "Records stored a second", rate(now?.recordsPerSecond), "/data")}
        {card("device_calls", "Device calls a second", rate(now?.deviceCallsPerSecond), "/services")}
        {card(
          "logins",
          "Logins a second",
          rate(now?.loginsPerSecond),
          "/devices?sort=lastSeen&direction=descending",
        )}
        {card("logins_refused", "Refused logins a second", rate(now?.refusedPerSecond), "#unknown")}
        {card("waiting", "Messages that wait", waiting === null ? "–" : countText(waiting), "/services")}
      </StatStrip>
      <SimpleGrid cols={{ base: 1, md: 2 }} spacing="sm">
        <Firmware fleet={fleet} />
        <Silent fleet={fleet} />
      </SimpleGrid>
      <LastChanges />
      <UnknownDevices />
    </Page>
  );
}

function sumOf(one: number | null, other: number | null): number | null {
  return one === null || other === null ? null : one + other;
}

/** Whether all services run, in a line. */
function Health({ observation }: { readonly observation: MeshObservation | null }) {
  if (observation === null) return null;
  const missing = observation.services
    .filter(({ replicas }) => !replicas.some(({ answers }) => answers))
    .map(({ name }) => name);
  const services = (
    <Anchor component={Link} href="/services" size="sm" underline="always">
      Services
    </Anchor>
  );
  return (
    <Text size="sm" role="status" {...(missing.length > 0 && { c: "var(--mantine-color-error)" })}>
      {missing.length === 0
        ? `All ${observation.services.length} services run. `
        : `${missing.join(", ")} ${missing.length === 1 ? "does" : "do"} not answer. `}
      {services}
    </Text>
  );
}

interface FleetProps {
  /** Null while it is not known. */
  readonly fleet: FleetSummary | null;
}

function Firmware({ fleet }: FleetProps) {
  const shares = fleet === null ? [] : firmwareShares(fleet);
  return (
    <Card title="Firmware" href="/devices?sort=firmware" leads="All versions">
      {fleet?.devices === 0 && <Text size="sm">There are no devices yet.</Text>}
      {shares.map(({ version, devices }) => (
        <div key={version ?? "none"}>
          <Group justify="space-between" gap="xs" wrap="nowrap">
            <Text size="sm" truncate>
              {version ?? "no version reported"}
            </Text>
            <Text size="sm">{countText(devices)}</Text>
          </Group>
          <Progress
            value={(devices / (fleet?.devices ?? devices)) * 100}
            aria-label={`Devices with ${version ?? "none"}`}
          />
        </div>
      ))}
    </Card>
  );
}

function Silent({ fleet }: FleetProps) {
  const [hours, setHours] = useState(24);
  const silent = fleet?.silent.find((each) => each.hours === hours)?.devices;
  return (
    <Card title="Silent devices" href="/devices?online=false&sort=lastSeen" leads="All">
      <NativeSelect
        label="Not seen for"
        value={String(hours)}
        onChange={(event) => setHours(Number(event.currentTarget.value))}
        data={silentHours.map((each) => ({
          value: String(each),
          label: each < 48 ? `${each} h` : `${each / 24} days`,
        }))}
        w="10rem"
      />
      <Text size="xl" fw={600} aria-live="polite">
        {silent === undefined ? "–" : countText(silent)}
      </Text>
    </Card>
  );
}

/** Refused logins of ids that are no device: a mistyped id, or a device of another installation. */
function UnknownDevices() {
  const api = useApi();
  const {
    data: tried,
    error,
    refetch,
  } = useQuery({
    queryKey: queryKeys.unknownDevices,
    queryFn: ({ signal }) => api.call("listUnknownDevices", { signal }),
    refetchInterval: unknownMs,
  });
  type Tried = NonNullable<typeof tried>[number];
  const columns: readonly Column<Tried>[] = [
    { heading: "ID", cell: ({ id }) => id },
    {
      heading: "Why",
      cell: (login) => diagnosisDetail({ ...login, name: "login_refused", topic: null, detail: null }),
      style: { miw: "16rem" },
    },
    { heading: "Last try", cell: ({ last_at }) => <RelativeTime at={last_at} /> },
  ];
  return (
    <Card title="Logins of unknown devices" id="unknown">
      <Failure error={error} title="The refused logins could not be read" onRetry={() => void refetch()} />
      {tried?.length === 0 && <Text size="sm">None.</Text>}
      {tried !== undefined && tried.length > 0 && (
        <DataTable
          label="Logins of unknown devices"
          minWidth={480}
          columns={columns}
          rows={tried}
          keyOf={({ id, address, client_id, reason }) => [id, address, client_id, reason].join(" ")}
        />
      )}
    </Card>
  );
}
