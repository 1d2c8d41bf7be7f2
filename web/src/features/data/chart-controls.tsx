import { Button, Group, Switch, Text } from "@mantine/core";
import { chartFormat } from "./chart-format.ts";
import { type ChartView, type chartViewDefaults, zoomValue } from "./chart-view.ts";

/** Properties of {@link ChartControls}. */
interface ChartControlsProps {
  readonly view: ChartView;
  readonly onChange: (changes: Partial<typeof chartViewDefaults>) => void;
}

/** Names the time zone of charts, switches it to UTC, and ends a zoom. */
export function ChartControls({ view, onChange }: ChartControlsProps) {
  const { zone } = chartFormat(view.zone);
  return (
    <Group gap="sm">
      {zone !== "UTC" && (
        <Text size="sm" c="dimmed">
          {zone}
        </Text>
      )}
      <Switch
        label="Times in UTC"
        checked={view.zone === "UTC"}
        onChange={(event) => onChange({ zone: event.currentTarget.checked ? "utc" : "" })}
      />
      {view.zoom === null ? (
        <Text size="sm" c="dimmed" visibleFrom="sm">
          Drag across a chart to zoom.
        </Text>
      ) : (
        <Button size="xs" variant="default" onClick={() => onChange({ zoom: zoomValue(null) })}>
          Reset the zoom
        </Button>
      )}
    </Group>
  );
}
