import type { Silence } from "@devmesh/contracts/model/silence";
import { Text } from "@mantine/core";
import { useApi } from "../../api/api-context.tsx";
import type { Column } from "../../components/data-table.tsx";
import { RelativeTime, useServerTime } from "../../components/relative-time.tsx";
import { ShortListTab } from "../../components/short-list-tab.tsx";
import { StateBadge } from "../../components/state.tsx";
import { dateTimeText } from "../../components/time-in-words.ts";
import { AlertsParts } from "./alerts-parts.tsx";
import { CreateSilence } from "./create-silence.tsx";
import { silencedDevices, silenceLooks, silenceState } from "./silence-words.ts";
import { useRules, useSilences } from "./use-alerts.ts";

/** Times for which alerts are not sent, those that ended within 7 days among them. */
export function SilencesTab() {
  const api = useApi();
  const now = useServerTime();
  const query = useSilences();
  const { data: rules = [] } = useRules();
  const ruleNames = ({ rule_ids }: Silence) =>
    rule_ids === null
      ? "all rules"
      : rule_ids.map((id) => rules.find((rule) => rule.id === id)?.name ?? id).join(", ");
  const columns: readonly Column<Silence>[] = [
    {
      heading: "Devices",
      namesRow: true,
      cell: (silence) => (
        <>
          <Text size="sm" fw={500} lineClamp={2}>
            {silencedDevices(silence)}
          </Text>
          {silence.note !== null && (
            <Text size="xs" c="dimmed" lineClamp={2}>
              {silence.note}
            </Text>
          )}
        </>
      ),
    },
    {
      heading: "State",
      cell: (silence) => {
        const state = silenceState(silence, now);
        return <StateBadge look={silenceLooks[state]}>{state}</StateBadge>;
      },
    },
    {
      heading: "Rules",
      cell: (silence) => (
        <Text size="sm" lineClamp={2}>
          {ruleNames(silence)}
        </Text>
      ),
    },
    { heading: "From", cell: ({ from }) => dateTimeText(from) },
    {
      heading: "Until",
      cell: ({ until }) => (
        <>
          {dateTimeText(until)}, <RelativeTime at={until} />
        </>
      ),
    },
  ];
  return (
    <ShortListTab
      heading="Alerts"
      title="Silences"
      noun="silence"
      tabs={<AlertsParts current="/alerts/silences" />}
      query={query}
      filterPlaceholder="Devices or note"
      textsOf={textsOfSilence}
      none="For the time of a silence, such as while a site is maintained, alerts are shown and nobody is sent them."
      columns={columns}
      minWidth={820}
      removal={{
        action: "End",
        label: (silence) => `End the silence of ${silencedDevices(silence)}`,
        blockedBy: (silence) => (silenceState(silence, now) === "ended" ? "It has ended" : undefined),
        consequence: () => "What fires is sent from now on.",
        run: ({ id }) => api.call("deleteSilence", { params: { id } }),
      }}
      creation="New silence"
      creationDialog={(onClose) => <CreateSilence onClose={onClose} />}
    />
  );
}

/** What the filter of the list searches. */
function textsOfSilence(silence: Silence): readonly (string | null)[] {
  return [silencedDevices(silence), silence.note];
}
