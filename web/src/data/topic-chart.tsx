import { Button, Group, NativeSelect, Stack, Table, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { lazy, Suspense, useMemo, useState } from "react";
import { useApi } from "../api/api-context.tsx";
import { Failure } from "../elements/failure.tsx";
import { Waiting } from "../elements/waiting.tsx";
import { numbersByTopic, summaryOf } from "./numeric-series.ts";
import { queryOf, type RecordSelection } from "./record-selection.ts";

const Plot = lazy(() => import("./plot.tsx").then((module) => ({ default: module.Plot })));

/** Most records that a chart is made of: the newest ones of the selection. */
const mostCharted = 2_000;

/** Draws the numbers that devices published, a topic at a time, and tells them in words. Keep the identity of `selection`. */
export function TopicChart({ selection }: { readonly selection: RecordSelection }) {
  const api = useApi();
  const [chosen, setChosen] = useState("");
  const { data, error, isPending, isFetching, refetch } = useQuery({
    queryKey: ["charted-records", selection],
    queryFn: ({ signal }) =>
      api.call("queryRecords", {
        query: { ...queryOf(selection), skip: -mostCharted, limit: mostCharted },
        signal,
      }),
    // It is made of what is stored now, and can be large.
    staleTime: 0,
    gcTime: 0,
  });
  const topics = useMemo(() => numbersByTopic(data ?? []), [data]);
  const topic = topics.has(chosen) ? chosen : ([...topics.keys()][0] ?? "");
  const numbers = topics.get(topic);
  if (isPending) return <Waiting />;
  if (error !== null) {
    return <Failure error={error} title="The records could not be read" onRetry={() => void refetch()} />;
  }
  if (numbers === undefined) {
    return (
      <Text c="dimmed" py="md">
        There are no numbers to draw.
      </Text>
    );
  }
  return (
    <Stack gap="sm">
      <Group align="end">
        <NativeSelect
          label="Topic"
          value={topic}
          data={[...topics.keys()]}
          onChange={(event) => setChosen(event.currentTarget.value)}
        />
        <Button variant="default" loading={isFetching} onClick={() => void refetch()}>
          Read again
        </Button>
        {data !== undefined && data.length >= mostCharted && (
          <Text size="sm" c="dimmed">
            Of the newest {mostCharted.toLocaleString("en")} records
          </Text>
        )}
      </Group>
      <Suspense fallback={<Waiting />}>
        <Plot {...numbers} />
      </Suspense>
      <Table aria-label={`Numbers of ${topic}`}>
        <Table.Thead>
          <Table.Tr>
            {["Series", "Latest", "Least", "Most", "Mean", "Values"].map((label) => (
              <Table.Th key={label} scope="col">
                {label}
              </Table.Th>
            ))}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {numbers.series.map(summaryOf).map(({ name, latest, least, most, mean, count }) => (
            <Table.Tr key={name}>
              <Table.Th scope="row">{name}</Table.Th>
              <Table.Td>{inShort(latest)}</Table.Td>
              <Table.Td>{inShort(least)}</Table.Td>
              <Table.Td>{inShort(most)}</Table.Td>
              <Table.Td>{inShort(mean)}</Table.Td>
              <Table.Td>{count.toLocaleString("en")}</Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Stack>
  );
}

function inShort(value: number): string {
  return value.toLocaleString("en", { maximumSignificantDigits: 6 });
}
