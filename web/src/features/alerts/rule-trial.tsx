import type { RuleTrial } from "@devmesh/contracts/model/alert";
import type { RuleCondition, ValueCondition } from "@devmesh/contracts/model/rule";
import { Text } from "@mantine/core";
import { useMemo } from "react";
import { serverNow } from "../../api/server-clock.ts";
import { type Column, DataTable } from "../../components/data-table.tsx";
import { countText } from "../../components/number-text.ts";
import { DeviceIdLink } from "../../components/row-link.tsx";
import { dateTimeText, longSpan } from "../../components/time-in-words.ts";
import { alertValueText } from "./alert-words.ts";
import styles from "./alerts.module.css";
import { LimitChart } from "./limit-chart.tsx";

/** Firings that are listed; all are counted. */
const mostShown = 20;

/** Milliseconds before the first firing that the chart shows. */
const beforeMs = 1_800_000;

/** Properties of {@link Trial}. */
interface TrialProps {
  readonly trial: RuleTrial;
  readonly when: RuleCondition;
  /** The time that it was tried on; null for the present alone. */
  readonly past: string | null;
}

/** What a rule would have done. */
export function Trial({ trial: { devices, matching, firings, cut }, when, past }: TrialProps) {
  const of = devices === 1 ? "1 device" : `${countText(devices)} devices`;
  return (
    <>
      <p className={styles.found}>
        {past !== null ? (
          firings.length === 0 ? (
            <>
              It would not have fired in the last {past}, on {of}.
            </>
          ) : (
            <>
              It would have fired{" "}
              <b>{firings.length === 1 ? "once" : `${countText(firings.length)} times`}</b> in the last {past}
              , on {countText(matching)} of {of}.
            </>
          )
        ) : (
          <>
            Now it holds for <b>{countText(matching)}</b> of {of}.
          </>
        )}
      </p>
      {cut && (
        <Text size="sm" c="var(--warn)">
          There was more than could be read in 10 s, or listed.
        </Text>
      )}
      {when.kind === "value" && <LastFired when={when} firings={firings} />}
      {firings.length > 0 && (
        <DataTable
          label="What it would have done"
          minWidth={440}
          columns={columns}
          rows={firings.toReversed().slice(0, mostShown)}
          keyOf={({ device_id, from }) => `${device_id} ${from}`}
        />
      )}
      {firings.length > mostShown && (
        <Text size="xs" c="dimmed">
          The last {countText(mostShown)} of {countText(firings.length)}.
        </Text>
      )}
    </>
  );
}

/** The value of the device that fired last, with the limit of the rule. */
function LastFired({ when, firings }: { readonly when: ValueCondition } & Pick<RuleTrial, "firings">) {
  const device = firings.at(-1)?.device_id;
  const held = useMemo(
    () =>
      firings
        .filter(({ device_id }) => device_id === device)
        .map(({ from, until }) => ({
          from: Date.parse(from),
          to: until === null ? Number.MAX_SAFE_INTEGER : Date.parse(until),
        })),
    [firings, device],
  );
  const [first] = held;
  if (device === undefined || first === undefined) return null;
  return (
    <div>
      <DeviceIdLink id={device} />
      <LimitChart device={device} when={when} from={first.from - beforeMs} until={null} held={held} />
    </div>
  );
}

const columns: readonly Column<RuleTrial["firings"][number]>[] = [
  {
    heading: "Device",
    namesRow: true,
    cell: ({ device_id }) => <DeviceIdLink id={device_id} />,
  },
  { heading: "From", cell: ({ from }) => dateTimeText(from) },
  {
    heading: "For",
    cell: ({ from, until }) => {
      const ms = (until === null ? serverNow() : Date.parse(until)) - Date.parse(from);
      return `${longSpan(Math.max(1_000, ms))}${until === null ? ", still" : ""}`;
    },
  },
  { heading: "Value", style: { ta: "end" }, cell: ({ value }) => alertValueText(value) || "–" },
];
