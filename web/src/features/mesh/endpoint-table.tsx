import { Table } from "@mantine/core";
import { ActivityCells, Figure } from "./activity-cells.tsx";
import { countText, durationText } from "./figures.ts";
import type { ObservedEndpoint } from "./observation.ts";

/** The endpoints of a service, its replicas that answer together: just now, and since they were started. */
export function EndpointTable({
  service,
  endpoints,
}: {
  readonly service: string;
  readonly endpoints: readonly ObservedEndpoint[];
}) {
  return (
    <Table aria-label={`Endpoints of ${service}`} withRowBorders={false} tabularNums verticalSpacing={2}>
      <Table.Thead>
        <Table.Tr>
          <Table.Th>Endpoint</Table.Th>
          <Table.Th ta="end">Requests/s</Table.Th>
          <Table.Th ta="end">Errors/s</Table.Th>
          <Table.Th ta="end">Mean time</Table.Th>
          <Table.Th ta="end">Requests in all</Table.Th>
          <Table.Th ta="end">Errors in all</Table.Th>
          <Table.Th ta="end">Mean of all</Table.Th>
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {endpoints.map(({ name, activity, counters: { requests, errors, total_ms } }) => (
          <Table.Tr key={name}>
            <Table.Th scope="row" fw={400}>
              {name}
            </Table.Th>
            <ActivityCells activity={activity} />
            <Figure>{countText(requests)}</Figure>
            <Figure>{countText(errors)}</Figure>
            <Figure>{requests > 0 && durationText(total_ms / requests)}</Figure>
          </Table.Tr>
        ))}
      </Table.Tbody>
    </Table>
  );
}
