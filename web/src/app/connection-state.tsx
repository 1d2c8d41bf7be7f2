import { Group, Text } from "@mantine/core";
import type { StreamState } from "../live/lasting-stream.ts";
import { useStreamState } from "../live/live-updates.tsx";

const shown: Readonly<Record<StreamState, { readonly text: string; readonly color: string }>> = {
  connecting: { text: "Connecting", color: "var(--mantine-color-gray-5)" },
  live: { text: "Live", color: "var(--mantine-color-teal-6)" },
  reconnecting: { text: "Reconnecting", color: "var(--mantine-color-yellow-6)" },
  unavailable: { text: "Live updates are not available", color: "var(--mantine-color-orange-6)" },
};

/** State of the live updates; screen readers announce its changes. */
export function ConnectionState() {
  const { text, color } = shown[useStreamState()];
  return (
    <Group gap={6} wrap="nowrap" role="status" aria-live="polite">
      <span
        aria-hidden="true"
        style={{ width: 8, height: 8, borderRadius: 4, background: color, flex: "none" }}
      />
      <Text size="sm" c="dimmed" component="span" lineClamp={1}>
        {text}
      </Text>
    </Group>
  );
}
