import type { AlertRule } from "@devmesh/contracts/model/rule";
import { Switch, Text } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { Redirect } from "wouter";
import { useApi } from "../../api/api-context.tsx";
import { queryKeys } from "../../api/query-keys.ts";
import type { Column } from "../../components/data-table.tsx";
import { Failure } from "../../components/failure.tsx";
import { countText } from "../../components/number-text.ts";
import { RowLink } from "../../components/row-link.tsx";
import { ShortListTab } from "../../components/short-list-tab.tsx";
import { StateBadge } from "../../components/state.tsx";
import { severityLooks } from "./alert-words.ts";
import { AlertsParts } from "./alerts-parts.tsx";
import { ruleSentence } from "./typed-rule.ts";
import { useAlertSummary, useChannels, useRules } from "./use-alerts.ts";

/** All rules in sentences, how many devices each fires for, and who is notified. */
export function RulesTab() {
  const api = useApi();
  const queries = useQueryClient();
  const query = useRules();
  const { data: summary } = useAlertSummary();
  const { data: channels = [] } = useChannels();
  const enabling = useMutation({
    mutationFn: ({ id, enabled }: Pick<AlertRule, "id" | "enabled">) =>
      api.call("changeRule", { params: { id }, body: { enabled } }),
    onSettled: () => queries.invalidateQueries({ queryKey: queryKeys.rules }),
  });
  const channelNames = ({ notify }: AlertRule) =>
    notify.map((id) => channels.find((channel) => channel.id === id)?.name ?? id).join(", ");
  const columns: readonly Column<AlertRule>[] = [
    {
      heading: "Rule",
      namesRow: true,
      cell: (rule) => (
        <>
          <RowLink href={`/alerts/rules/${rule.id}`} lines={2}>
            {rule.name}
          </RowLink>
          <Text size="xs" c="dimmed" style={{ overflowWrap: "anywhere", whiteSpace: "normal" }}>
            {ruleSentence(rule)}
          </Text>
        </>
      ),
    },
    {
      heading: "Severity",
      cell: ({ severity }) => <StateBadge look={severityLooks[severity]}>{severity}</StateBadge>,
    },
    {
      heading: "Firing",
      style: { ta: "end" },
      cell: ({ id }) => countText(summary?.rules.find(({ rule_id }) => rule_id === id)?.firing ?? 0),
    },
    {
      heading: "Notifies",
      cell: (rule) => (
        <Text size="sm" lineClamp={2} {...(rule.notify.length === 0 && { c: "dimmed" })}>
          {channelNames(rule) || "nobody"}
        </Text>
      ),
    },
    {
      heading: "Enabled",
      cell: (rule) => (
        <Switch
          aria-label={`Enable ${rule.name}`}
          checked={rule.enabled}
          disabled={enabling.isPending}
          onChange={({ currentTarget }) => enabling.mutate({ id: rule.id, enabled: currentTarget.checked })}
        />
      ),
    },
  ];
  return (
    <ShortListTab
      heading="Alerts"
      title="Rules"
      noun="rule"
      tabs={<AlertsParts current="/alerts/rules" />}
      query={query}
      filterPlaceholder="Name or condition"
      textsOf={textsOfRule}
      none="A rule is a sentence: when a value of a device is above a limit, or a device is away. It is tried on the past before it is saved."
      columns={columns}
      minWidth={820}
      removal={{
        action: "Delete",
        label: ({ name }) => `Delete the rule ${name}`,
        consequence: () => "Its alerts clear.",
        run: ({ id }) => api.call("deleteRule", { params: { id } }),
      }}
      after={<Failure error={enabling.error} title="The rule was not changed" />}
      creation="New rule"
      creationDialog={() => <Redirect to="/alerts/rules/new" />}
    />
  );
}

/** What the filter of the list searches. */
function textsOfRule(rule: AlertRule): readonly (string | null)[] {
  return [rule.name, ruleSentence(rule), rule.severity, rule.note];
}
