import type { Notification } from "@devmesh/contracts/model/notification";
import { Box, Button, Code, Group, Paper, Stack, Switch, Text } from "@mantine/core";
import { useState } from "react";
import { queryKeys } from "../../../api/query-keys.ts";
import { Tag } from "../../../components/tag.tsx";
import { useFrames } from "../../../live/live-updates.tsx";
import { useDataFrames } from "../../../live/use-data-frames.ts";
import { useStreamed } from "../../../live/use-streamed.ts";
import { DiagnosisList } from "./diagnostics.tsx";
import { emptyLog, type LogEntry, maxLogEntries, withFrames } from "./event-log.ts";
import type { SectionProps } from "./section.ts";

/** A live log of the device's events. */
export function LogSection({ device: { id } }: SectionProps) {
  const [log, updateLog] = useStreamed(queryKeys.log(id), emptyLog);
  const [held, setHeld] = useState<typeof log | null>(null);
  const [records, setRecords] = useState(false);
  const add = (frames: readonly Notification[]) => updateLog((before) => withFrames(before, id, frames));
  useFrames(add);
  useDataFrames({
    device: id,
    enabled: records,
    onFrames: (frames) => add(frames.filter(({ name }) => name === "data")),
  });
  const shown = held ?? log;
  const waiting = log.total - shown.total;
  return (
    <Stack>
      <DiagnosisList id={id} />
      <Group gap="sm">
        <Button
          variant="default"
          aria-pressed={held !== null}
          onClick={() => setHeld(held === null ? log : null)}
        >
          {held === null ? "Pause" : "Go on"}
        </Button>
        <Button
          variant="default"
          disabled={log.entries.length === 0}
          onClick={() => {
            // The count continues, so that positions stay unique.
            updateLog((before) => ({ ...before, entries: [] }));
            setHeld((before) => before && { ...log, entries: [] });
          }}
        >
          Clear
        </Button>
        <Switch
          label="Records that it publishes, too"
          checked={records}
          onChange={(event) => setRecords(event.currentTarget.checked)}
        />
        <Text size="sm" c="dimmed" role="status" ml="auto">
          {held === null
            ? `The last ${maxLogEntries} are kept while you look`
            : `Paused, ${waiting} more since`}
        </Text>
      </Group>
      {shown.entries.length === 0 ? (
        <Text c="dimmed" py="xl" ta="center">
          Nothing has happened since you look: connections, calls, events and changes appear here.
        </Text>
      ) : (
        <Paper
          withBorder
          component="ol"
          aria-label="Events of the device, newest first"
          m={0}
          p={0}
          mah="max(12rem, calc(100dvh - 17rem))"
          style={{ listStyle: "none", overflow: "auto" }}
        >
          {shown.entries.map((entry) => (
            <Entry key={entry.position} entry={entry} />
          ))}
        </Paper>
      )}
    </Stack>
  );
}

function Entry({ entry: { frame } }: { readonly entry: LogEntry }) {
  const [opened, setOpened] = useState(false);
  return (
    <Box
      component="li"
      px="sm"
      py={4}
      style={{ borderBottom: "1px solid var(--mantine-color-default-border)" }}
      fz="sm"
    >
      <details onToggle={(event) => setOpened(event.currentTarget.open)}>
        <Group component="summary" gap="sm" wrap="nowrap" style={{ cursor: "pointer" }}>
          <time dateTime={frame.timestamp}>{new Date(frame.timestamp).toLocaleTimeString()}</time>
          <Tag look={frame.name === "online" ? "good" : "plain"}>{frame.name}</Tag>
          <Text span truncate flex="1 1 0" size="xs" ff="monospace">
            {JSON.stringify(frame.data).slice(0, 300)}
          </Text>
        </Group>
        {opened && (
          <Code block mt={4}>
            {JSON.stringify(frame.data, null, 2)}
          </Code>
        )}
      </details>
    </Box>
  );
}
