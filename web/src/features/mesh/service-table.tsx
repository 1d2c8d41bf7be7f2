import type { ReplicaFigures } from "@devmesh/contracts/model/mesh-state";
import { Table, Text, UnstyledButton, VisuallyHidden } from "@mantine/core";
import { ChevronRight } from "lucide-react";
import { type ReactNode, useState } from "react";
import { FoldingTable } from "../../components/folding-table.tsx";
import { countText, durationText, rateText } from "../../components/number-text.ts";
import { RelativeTime } from "../../components/relative-time.tsx";
import { StateBadge } from "../../components/state.tsx";
import { clockText } from "../../components/time-in-words.ts";
import { WaitingFigure } from "../../components/waiting.tsx";
import type { Activity } from "./activity.ts";
import type { ObservedReplica, ObservedService } from "./observation.ts";

/** The services with their replicas; each opens to show its endpoints. */
export function ServiceTable({ services }: { readonly services: readonly ObservedService[] }) {
  return (
    <FoldingTable minWidth={720} aria-label="Services" tabularNums>
      <Table.Thead>
        <Table.Tr>
          <Table.Th>Service, replica</Table.Th>
          <Table.Th ta="end">Work/s</Table.Th>
          <Table.Th ta="end">Requests/s</Table.Th>
          <Table.Th ta="end">Errors/s</Table.Th>
          <Table.Th ta="end">Mean time</Table.Th>
          <Table.Th>Version</Table.Th>
          <Table.Th>Started</Table.Th>
        </Table.Tr>
      </Table.Thead>
      {services.map((service) => (
        <ServiceRows key={service.name} service={service} />
      ))}
    </FoldingTable>
  );
}

function ServiceRows({ service }: { readonly service: ObservedService }) {
  const { name, hangs, replicas, endpoints, activity } = service;
  const [opened, setOpened] = useState(false);
  const answering = replicas.filter(({ answers }) => answers).length;
  const endpointsId = `endpoints-${name}`;
  const only = replicas.length === 1 && answering === 1 && !hangs ? replicas[0] : undefined;
  return (
    <Table.Tbody>
      <Table.Tr>
        <Table.Th scope="row">
          <UnstyledButton
            fz="inherit"
            fw={600}
            aria-label={`Endpoints of ${name}`}
            aria-expanded={opened}
            {...(opened && { "aria-controls": endpointsId })}
            onClick={() => setOpened(!opened)}
          >
            <ChevronRight size={14} style={{ transform: opened ? "rotate(90deg)" : "none" }} /> {name}
          </UnstyledButton>
        </Table.Th>
        {answering === 0 ? (
          <Table.Td colSpan={6}>
            <StateBadge look="bad">
              {hangs ? "hangs: it is connected and does not answer" : "missing: no replica answers"}
            </StateBadge>
          </Table.Td>
        ) : (
          <>
            <WorkCell replicas={replicas} />
            <ActivityCells activity={activity} />
            {only === undefined ? (
              <Table.Td colSpan={2} data-label="Replicas">
                {answering} replicas {hangs && <StateBadge look="bad">one more hangs</StateBadge>}
              </Table.Td>
            ) : (
              <AgeCells replica={only} />
            )}
          </>
        )}
      </Table.Tr>
      {only === undefined && replicas.map((replica) => <ReplicaRow key={replica.id} replica={replica} />)}
      {opened && (
        <Table.Tr>
          <Table.Td colSpan={7} id={endpointsId} pl="1.5rem">
            {endpoints.length > 0 ? (
              <EndpointTable service={service} />
            ) : (
              <Text size="sm" c="dimmed">
                {answering === 0 ? "No replica answers." : "No endpoints: it only calls other services."}
              </Text>
            )}
          </Table.Td>
        </Table.Tr>
      )}
    </Table.Tbody>
  );
}

/** Number of shown characters of a replica's id. */
const shownIdLength = 8;

function ReplicaRow({ replica }: { readonly replica: ObservedReplica }) {
  const { id, heardAt, answers, activity } = replica;
  return (
    <Table.Tr>
      <Table.Th scope="row" pl="2rem" ff="monospace" title={id}>
        {id.slice(0, shownIdLength)}
      </Table.Th>
      {answers ? (
        <>
          <WorkCell replicas={[replica]} />
          <ActivityCells activity={activity} />
        </>
      ) : (
        <Table.Td colSpan={4}>
          <StateBadge look="bad">gone</StateBadge> last seen at {clockText(heardAt)}
        </Table.Td>
      )}
      <AgeCells replica={replica} />
    </Table.Tr>
  );
}

/** Work of services that is no request, by the figure that counts it. */
const works: Readonly<Partial<Record<keyof ReplicaFigures, string>>> = {
  records_stored: "records",
  messages_handled: "messages",
  mails_sent: "mails",
  logins: "logins",
};

/** The cell with work of replicas that is no request, such as records that they store. */
function WorkCell({ replicas }: Pick<ObservedService, "replicas">) {
  const done = Object.entries(works).flatMap(([figure, noun]) => {
    const rates = replicas.flatMap(({ growth }) => growth[figure as keyof ReplicaFigures] ?? []);
    const rate = rateText(rates.reduce((sum, each) => sum + each, 0));
    return rates.length === 0 ? [] : [`${rate} ${rate === "1" ? noun.slice(0, -1) : noun}`];
  });
  return <Figure label="Work/s">{done.join(", ")}</Figure>;
}

/** The cells with what a replica runs, and since when. */
function AgeCells({ replica: { version, started } }: { readonly replica: ObservedReplica }) {
  return (
    <>
      <Table.Td data-label="Version">{version}</Table.Td>
      <Table.Td data-label="Started">
        <RelativeTime at={started} />
      </Table.Td>
    </>
  );
}

/** The endpoints of a service, its replicas that answer together: just now, and since they were started. */
function EndpointTable({ service: { name: service, endpoints } }: { readonly service: ObservedService }) {
  return (
    <FoldingTable
      minWidth={620}
      aria-label={`Endpoints of ${service}`}
      withRowBorders={false}
      tabularNums
      verticalSpacing={2}
    >
      <Table.Thead>
        <Table.Tr>
          <Table.Th>Endpoint</Table.Th>
          <Table.Th ta="end">Requests/s</Table.Th>
          <Table.Th ta="end">Errors/s</Table.Th>
          <Table.Th ta="end">Mean time</Table.Th>
          <Table.Th ta="end">Total requests</Table.Th>
          <Table.Th ta="end">Total errors</Table.Th>
          <Table.Th ta="end">Overall mean time</Table.Th>
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {endpoints.map(({ name, activity, counters: { requests, errors, total_ms } }) => (
          <Table.Tr key={name}>
            <Table.Th scope="row" fw={400}>
              {name}
            </Table.Th>
            <ActivityCells activity={activity} />
            <Figure label="Total requests">{countText(requests)}</Figure>
            <Figure label="Total errors">{countText(errors)}</Figure>
            <Figure label="Overall mean time">{requests > 0 && durationText(total_ms / requests)}</Figure>
          </Table.Tr>
        ))}
      </Table.Tbody>
    </FoldingTable>
  );
}

/** The cells with a load, which takes two readings: requests and errors per second, mean time. */
function ActivityCells({ activity }: { readonly activity: Activity | null }) {
  if (activity === null)
    return ["Requests/s", "Errors/s", "Mean time"].map((label) => (
      <Figure key={label} label={label}>
        <WaitingFigure />
      </Figure>
    ));
  const { requestsPerSecond, errorsPerSecond, meanMs } = activity;
  return (
    <>
      <Figure label="Requests/s">{rateText(requestsPerSecond)}</Figure>
      <Figure label="Errors/s" failing={errorsPerSecond > 0}>
        {rateText(errorsPerSecond)}
      </Figure>
      <Figure label="Mean time">{meanMs !== null && durationText(meanMs)}</Figure>
    </>
  );
}

/** Properties of {@link Figure}. */
interface FigureProps {
  /** Heading of its column. */
  readonly label: string;
  readonly failing?: boolean;
  readonly children: ReactNode;
}

/** A cell with a number, or a dash for none. */
function Figure({ label, failing = false, children }: FigureProps) {
  return (
    <Table.Td
      ta="end"
      data-label={label}
      style={{ whiteSpace: "nowrap" }}
      {...(failing && { c: "var(--mantine-color-error)", fw: 600 })}
    >
      {children || (
        <>
          <span aria-hidden="true">–</span>
          <VisuallyHidden>no data</VisuallyHidden>
        </>
      )}
    </Table.Td>
  );
}
