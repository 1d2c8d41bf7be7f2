import type { Notification } from "@devmesh/contracts/model/notification";
import { Button, Code, Group, Stack, Switch, Text } from "@mantine/core";
import { useState } from "react";
import { queryKeys } from "../../../api/query-keys.ts";
import { Tag } from "../../../components/tag.tsx";
import { useFrames } from "../../../live/live-updates.tsx";
import { useDataFrames } from "../../../live/use-data-frames.ts";
import { useStreamed } from "../../../live/use-streamed.ts";
import styles from "./device-page.module.css";
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
        <ol className={styles.log} aria-label="Events of the device, newest first">
          {shown.entries.map((entry) => (
            <Entry key={entry.position} entry={entry} />
          ))}
        </ol>
      )}
    </Stack>
  );
}

function Entry({ entry: { frame } }: { readonly entry: LogEntry }) {
  const [opened, setOpened] = useState(false);
  return (
    <li className={styles.entry}>
      <details onToggle={(event) => setOpened(event.currentTarget.open)}>
        <summary>
          <time dateTime={frame.timestamp}>{new Date(frame.timestamp).toLocaleTimeString()}</time>
          <Tag look={frame.name === "online" ? "good" : "plain"}>{frame.name}</Tag>
          <span>{JSON.stringify(frame.data).slice(0, 300)}</span>
        </summary>
        {opened && (
          <Code block mt={4}>
            {JSON.stringify(frame.data, null, 2)}
          </Code>
        )}
      </details>
    </li>
  );
}
