import type { DataRecord } from "@devmesh/contracts/model/data-record";
import type { Diagnosis } from "@devmesh/contracts/model/diagnostics";
import { Alert, Code, Loader, Stack, Text } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { Check } from "lucide-react";
import { useApi } from "../../../api/api-context.tsx";
import { queryKeys } from "../../../api/query-keys.ts";
import { useReading } from "../../../api/use-reading.ts";
import { RelativeTime } from "../../../components/relative-time.tsx";
import { useDataFrames } from "../../../live/use-data-frames.ts";
import { recordsIn } from "../../data/record-selection.ts";
import { diagnosisDetail, diagnosisName, isProblem } from "../shared/diagnosis-words.ts";
import { useDiagnostics } from "../shared/use-diagnostics.ts";

/** Shows whether a device has published anything, as it happens, and what keeps it from doing so. */
export function FirstMessage({ id }: { readonly id: string }) {
  const record = useNewestRecord(id);
  const { data: history = [] } = useDiagnostics(id);
  const problem = problemAfter(history, record);
  const isConnected = history.find(({ name }) => name === "connected" || name === "disconnected")?.name;
  const waiting =
    isConnected === "connected"
      ? "The device is connected. Waiting for the first message…"
      : "Waiting for the first message…";
  return (
    <Stack gap="xs">
      <Alert
        role="group"
        color={record === null ? "blue" : "teal"}
        icon={record === null ? <Loader size={16} /> : <Check size={16} />}
        title={<span role="status">{record === null ? waiting : "The device sends messages."}</span>}
      >
        {record !== null && (
          <Text size="sm" lineClamp={3}>
            <RelativeTime at={record.timestamp} />: {record.topic} <Code>{record.message.slice(0, 300)}</Code>
          </Text>
        )}
      </Alert>
      {problem !== undefined && (
        <Alert color="red" title={`${capitalised(diagnosisName(problem))}: ${diagnosisDetail(problem)}`}>
          <RelativeTime at={problem.last_at} />
        </Alert>
      )}
    </Stack>
  );
}

/** The newest record of a device, kept current; null where there is none. */
function useNewestRecord(id: string): DataRecord | null {
  const api = useApi();
  const queries = useQueryClient();
  const queryKey = queryKeys.newestRecord(id);
  useDataFrames({
    device: id,
    enabled: true,
    onFrames(frames) {
      const newest = recordsIn(frames).at(-1);
      if (newest !== undefined) queries.setQueryData(queryKey, newest);
    },
    onMissed: () => void queries.invalidateQueries({ queryKey }),
  });
  const { data = null } = useReading({
    queryKey,
    queryFn: async ({ signal }) => {
      const records = await api.call("queryRecords", { query: { device_id: id, skip: -1 }, signal });
      return records[0] ?? null;
    },
  });
  return data;
}

/** The newest problem, if the device has published nothing since; a connection alone does not end it. */
function problemAfter(history: readonly Diagnosis[], record: DataRecord | null): Diagnosis | undefined {
  return history.find((entry) => isProblem(entry) && (record === null || entry.last_at > record.timestamp));
}

function capitalised(words: string): string {
  return words.slice(0, 1).toUpperCase() + words.slice(1);
}
