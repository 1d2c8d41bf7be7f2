import { isJsonObject, type JsonObject } from "@devmesh/contracts/model/json";
import { Button, Group, SimpleGrid, Stack, Switch, Text, VisuallyHidden } from "@mantine/core";
import { type CSSProperties, useMemo, useState } from "react";
import { CodeBlock } from "../../../components/code-block.tsx";
import { JsonEditor } from "../../../components/json-editor.tsx";
import { describeFault, parseJson } from "../../../components/parse-json.ts";
import { mergePatchBetween } from "./json-changes.ts";
import type { SectionProps } from "./section.ts";
import {
  type ComparisonLine,
  compareShadow,
  countDifferences,
  onlyDifferences,
} from "./shadow-comparison.ts";
import { useDeviceDraft } from "./use-device-draft.tsx";

/** Edits the desired state beside the reported one. */
export function ShadowSection({ device }: SectionProps) {
  const { desired: current, reported } = device.shadow.state;
  const { form, value, buttons, alerts } = useDeviceDraft<JsonObject, { text: string }>({
    device,
    what: "the desired state",
    read: ({ shadow }) => shadow.state.desired,
    format: (desired) => ({ text: format(desired) }),
    parse: ({ text }) => objectIn(text),
    validate: { text: wrongText },
    patch: (from, to) => ({ shadow: { state: { desired: mergePatchBetween(from, to) } } }),
  });
  const { text } = form.values;
  const edited = useMemo(() => objectIn(text), [text]);

  const lines = useMemo(() => compareShadow(edited ?? current, reported), [edited, current, reported]);
  const differences = countDifferences(lines);
  const [narrowed, setNarrowed] = useState(false);
  const shown = useMemo(() => (narrowed ? onlyDifferences(lines) : lines), [narrowed, lines]);
  return (
    <Stack>
      {alerts}
      <SimpleGrid cols={{ base: 1, md: 2 }}>
        <Stack gap="xs">
          <JsonEditor label="Desired" minRows={12} {...form.getInputProps("text")} />
          <Group gap="xs">
            {buttons}
            <Button
              variant="default"
              disabled={value === null}
              onClick={() => value !== null && form.setFieldValue("text", format(value))}
            >
              Format
            </Button>
            <Text size="xs" c="dimmed">
              Shadow version {device.shadow.version}. Set a member to null to remove it.
            </Text>
          </Group>
        </Stack>
        <Stack gap={4}>
          <Group justify="space-between">
            <Text size="sm" fw={500}>
              Reported
            </Text>
            <Text size="xs" c="dimmed" role="status">
              {differences === 0
                ? "In sync"
                : differences === 1
                  ? "Not in sync: 1 value differs"
                  : `Not in sync: ${differences} values differ`}
            </Text>
          </Group>
          <CodeBlock label="Reported" maxHeight="32rem">
            {shown.map((line, at) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: lines have no identity but their place
              <Line key={at} line={line} />
            ))}
          </CodeBlock>
          <Switch
            size="xs"
            mt={4}
            label="Only differences"
            checked={narrowed}
            onChange={(event) => setNarrowed(event.currentTarget.checked)}
          />
        </Stack>
      </SimpleGrid>
    </Stack>
  );
}

const looks: Readonly<Record<ComparisonLine["status"], CSSProperties>> = {
  same: {},
  unasked: { color: "var(--mantine-color-dimmed)" },
  differs: {
    background: "var(--warn-soft)",
    color: "var(--warn)",
  },
  missing: { background: "var(--bad-soft)", color: "var(--bad)" },
};

function Line({ line: { indent, text, status, desired } }: { readonly line: ComparisonLine }) {
  const mark = status === "differs" ? "≠" : status === "missing" ? "+" : " ";
  return (
    <span style={{ display: "block", whiteSpace: "pre", ...looks[status] }}>
      <span aria-hidden="true">{` ${mark} `}</span>
      {"  ".repeat(indent)}
      {text}
      {status === "differs" && `  (desired: ${desired})`}
      {status === "missing" && "  (not reported)"}
      {status === "unasked" && <VisuallyHidden> (not desired)</VisuallyHidden>}
    </span>
  );
}

function format(value: JsonObject): string {
  return JSON.stringify(value, null, 2);
}

function objectIn(text: string): JsonObject | null {
  const parsed = parseJson(text);
  return parsed.kind === "value" && isJsonObject(parsed.value) ? parsed.value : null;
}

function wrongText(text: string): string | null {
  const parsed = parseJson(text);
  if (parsed.kind === "fault") return describeFault(parsed.fault);
  return isJsonObject(parsed.value) ? null : "The desired state is a JSON object.";
}
