import { isJsonObject, type JsonObject } from "@devmesh/contracts/model/json";
import { Button, Group, SimpleGrid, Stack, Switch, Text, VisuallyHidden } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { useApi } from "../api/api-context.tsx";
import { queryKeys } from "../api/query-keys.ts";
import { Failure } from "../elements/failure.tsx";
import { JsonEditor } from "../elements/json-editor.tsx";
import { parseJson } from "../elements/parse-json.ts";
import { ChangeConflict } from "./change-conflict.tsx";
import { changeDevice } from "./change-device.ts";
import styles from "./device-page.module.css";
import { equalJson } from "./equal-json.ts";
import { leafChanges } from "./leaf-changes.ts";
import { mergePatchBetween } from "./merge-patch.ts";
import type { SectionProps } from "./section.ts";
import {
  type ComparisonLine,
  compareShadow,
  countDifferences,
  onlyDifferences,
} from "./shadow-comparison.ts";

/** The desired state to be edited, beside what the device reports. */
export function ShadowSection({ device }: SectionProps) {
  const api = useApi();
  const queries = useQueryClient();
  const { desired: current, reported } = device.shadow.state;
  const [base, setBase] = useState<JsonObject>(current);
  const [text, setText] = useState(() => format(current));
  const parsed = useMemo(() => parseJson(text), [text]);
  const edited = parsed.kind === "value" && isJsonObject(parsed.value) ? parsed.value : null;
  const dirty = edited === null || !equalJson(edited, base);
  const movedOn = !equalJson(current, base);
  const agreed = edited !== null && equalJson(edited, current);

  const begin = (desired: JsonObject) => {
    setBase(desired);
    setText(format(desired));
  };
  // What nobody has edited follows what others save; the stream may also tell what is saved here before the answer does.
  if (movedOn && (!dirty || agreed)) begin(current);

  const saving = useMutation({
    mutationFn: ({ from, to }: { readonly from: JsonObject; readonly to: JsonObject }) =>
      changeDevice(api, {
        id: device.id,
        patch: { shadow: { state: { desired: mergePatchBetween(from, to) } } },
        isAsRead: ({ shadow }) => equalJson(shadow.state.desired, from),
      }),
    onSuccess: ({ kind, device: changed }) => {
      if (kind === "saved") begin(changed.shadow.state.desired);
      queries.setQueryData(queryKeys.device(device.id), changed);
    },
  });
  const save = (from: JsonObject) => edited !== null && saving.mutate({ from, to: edited });

  const lines = useMemo(() => compareShadow(edited ?? current, reported), [edited, current, reported]);
  const differences = countDifferences(lines);
  const [narrowed, setNarrowed] = useState(false);
  const shown = useMemo(() => (narrowed ? onlyDifferences(lines) : lines), [narrowed, lines]);
  return (
    <Stack>
      {movedOn && dirty && (
        <ChangeConflict
          what="the desired state"
          changes={edited === null ? null : leafChanges(base, current, edited)}
          saving={saving.isPending}
          onTakeTheirs={() => begin(current)}
          onOverwrite={edited === null ? null : () => save(current)}
        />
      )}
      {saving.error !== null && <Failure error={saving.error} title="The desired state was not saved" />}
      <SimpleGrid cols={{ base: 1, md: 2 }}>
        <Stack gap="xs">
          <JsonEditor
            label="Desired"
            text={text}
            parsed={parsed}
            wrong={edited === null ? "The desired state is a JSON object." : null}
            minRows={12}
            onChange={setText}
          />
          <Group gap="xs">
            <Button
              disabled={!dirty || edited === null || movedOn}
              loading={saving.isPending}
              onClick={() => save(base)}
            >
              Save
            </Button>
            <Button variant="default" disabled={!dirty} onClick={() => begin(current)}>
              Discard
            </Button>
            <Button
              variant="default"
              disabled={edited === null}
              onClick={() => edited !== null && setText(format(edited))}
            >
              Format
            </Button>
            <Text size="xs" c="dimmed">
              Shadow version {device.shadow.version}. A member that is null is removed.
            </Text>
          </Group>
        </Stack>
        <Stack gap={4}>
          <Group justify="space-between">
            <Text size="sm" fw={500} id="reported">
              Reported
            </Text>
            <Text size="xs" c="dimmed" role="status">
              {differences === 0
                ? "The device reports all that is desired"
                : differences === 1
                  ? "1 value differs from what is desired"
                  : `${differences} values differ from what is desired`}
            </Text>
          </Group>
          {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by the keyboard */}
          <section className={styles.json} aria-labelledby="reported" tabIndex={0}>
            {shown.map((line, at) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: lines have no identity but their place
              <Line key={at} line={line} />
            ))}
          </section>
          <Switch
            size="xs"
            mt={4}
            label="Only what differs"
            checked={narrowed}
            onChange={(event) => setNarrowed(event.currentTarget.checked)}
          />
        </Stack>
      </SimpleGrid>
    </Stack>
  );
}

function Line({ line: { indent, text, standing, desired } }: { readonly line: ComparisonLine }) {
  const mark = standing === "differs" ? "≠" : standing === "missing" ? "+" : " ";
  return (
    <span className={styles.line} data-standing={standing}>
      <span aria-hidden="true">{` ${mark} `}</span>
      {"  ".repeat(indent)}
      {text}
      {standing === "differs" && `  (desired: ${desired})`}
      {standing === "missing" && "  (not reported)"}
      {standing === "unasked" && <VisuallyHidden> (not desired)</VisuallyHidden>}
    </span>
  );
}

function format(value: JsonObject): string {
  return JSON.stringify(value, null, 2);
}
