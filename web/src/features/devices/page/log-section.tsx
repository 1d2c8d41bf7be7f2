import { Box, Button, Code, Group, Paper, Stack, Switch, Text } from "@mantine/core";
import { useState } from "react";
import { StateBadge } from "../../../components/state.tsx";
import { clockText, dateTimeText } from "../../../components/time-in-words.ts";
import { DiagnosisList } from "./diagnostics.tsx";
import { frameWords, type LogEntry, maxLogEntries, messageOf } from "./event-log.ts";
import type { SectionProps } from "./section.ts";
import { useEventLog } from "./use-event-log.ts";

/** The device's events of the last hour, and live. */
export function LogSection({ device: { id } }: SectionProps) {
  const [records, setRecords] = useState(false);
  const { log, clear } = useEventLog(id, records);
  const [held, setHeld] = useState<typeof log | null>(null);
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
            clear();
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
            ? `The last hour, then live; the last ${maxLogEntries} are kept`
            : `Paused, ${waiting} more since`}
        </Text>
      </Group>
      {shown.entries.length === 0 ? (
        <Text c="dimmed" py="xl" ta="center">
          Nothing happened in the last hour: connections, calls, events and changes appear here.
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
  const { topic, payload } = messageOf(frame);
  const { words, look } = frameWords(frame);
  const shown = payload.slice(0, 300);
  return (
    <Box component="li" px="sm" py={4} style={{ borderBottom: "1px solid var(--line-soft)" }} fz="sm">
      <details onToggle={(event) => setOpened(event.currentTarget.open)}>
        <Group component="summary" gap="sm" wrap="nowrap" style={{ cursor: "pointer" }}>
          <time
            dateTime={frame.timestamp}
            title={dateTimeText(frame.timestamp)}
            style={{ fontVariantNumeric: "tabular-nums" }}
          >
            {clockText(frame.timestamp)}
          </time>
          <StateBadge look={look}>{words}</StateBadge>
          {topic !== null && (
            <Text span truncate flex="0 1 auto" maw="40%" size="xs" ff="monospace" title={topic}>
              {topic}
            </Text>
          )}
          <Text span truncate flex="1 1 0" size="xs" ff="monospace" c="dimmed" title={shown}>
            {shown}
          </Text>
        </Group>
        {opened && (
          <Code block mt={4}>
            {JSON.stringify(frame, null, 2)}
          </Code>
        )}
      </details>
    </Box>
  );
}
