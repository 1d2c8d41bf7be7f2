import { type Alert, AlertState, meshRuleId } from "@devmesh/contracts/model/alert";
import { DeviceId } from "@devmesh/contracts/model/device-id";
import { type AlertRule, Severity } from "@devmesh/contracts/model/rule";
import { Button, Checkbox, Group, NativeSelect, SegmentedControl, Text } from "@mantine/core";
import { Bell, Check, Plus } from "lucide-react";
import { useState } from "react";
import { useLocation } from "wouter";
import { Card } from "../../components/card.tsx";
import { type Column, DataTable } from "../../components/data-table.tsx";
import { EmptyState } from "../../components/empty-state.tsx";
import { FilterInput } from "../../components/filter-input.tsx";
import { ListTab } from "../../components/list-tab.tsx";
import { MoreFilters } from "../../components/more-filters.tsx";
import { countText } from "../../components/number-text.ts";
import { RelativeTime } from "../../components/relative-time.tsx";
import { DeviceIdLink, RowLink } from "../../components/row-link.tsx";
import { SelectionBar } from "../../components/selection-bar.tsx";
import { shortId } from "../../components/short-id.ts";
import { StateBadge } from "../../components/state.tsx";
import { useAddress } from "../../components/use-address.ts";
import { Acknowledge } from "./acknowledge.tsx";
import {
  alertDeviceText,
  alertLook,
  alertStateText,
  alertValueText,
  severityLooks,
  worstFirst,
} from "./alert-words.ts";
import { AlertsParts } from "./alerts-parts.tsx";
import { mostListed, useAlerts, useRules } from "./use-alerts.ts";

const defaults = { state: "firing", severity: "", rule: "", device: "" };

/** What fires, and what did; several alerts can be acknowledged at a time. */
export function AlertsTab() {
  const [{ state, severity, rule, device }, change] = useAddress(defaults);
  const [, navigate] = useLocation();
  const isDevice = device === "" || DeviceId.safeParse(device).success;
  const chosenState = AlertState.safeParse(state).data;
  const chosenSeverity = Severity.safeParse(severity).data;
  const { data, error, isPending, refetch } = useAlerts({
    ...(chosenState && { state: chosenState }),
    ...(chosenSeverity && { severity: chosenSeverity }),
    ...(rule !== "" && { rule_id: rule }),
    ...(device !== "" && isDevice && { device_id: device }),
  });
  const [wanted, setWanted] = useState<ReadonlySet<string>>(new Set());
  const [acknowledged, setAcknowledged] = useState<readonly Alert[] | null>(null);
  const open = data?.filter(isOpen) ?? [];
  const selected = open.filter(({ id }) => wanted.has(id));
  const { data: rules = [] } = useRules();
  const isNarrowed = severity !== "" || rule !== "" || device !== "";
  const select = (id: string, isSelected: boolean) => {
    const changed = new Set(wanted);
    if (isSelected) changed.add(id);
    else changed.delete(id);
    setWanted(changed);
  };
  return (
    <>
      <ListTab
        title="Alerts"
        count={
          data === undefined ? undefined : `${countText(data.length)}${data.length < mostListed ? "" : "+"}`
        }
        tabs={<AlertsParts current="/alerts" />}
        actions={
          <Button leftSection={<Plus size={16} />} onClick={() => navigate("/alerts/rules/new")}>
            New rule
          </Button>
        }
        filters={
          <Group gap="sm">
            <SegmentedControl
              size="xs"
              aria-label="State"
              value={chosenState ?? "all"}
              onChange={(value) => change({ state: value })}
              data={[
                { value: "firing", label: "Firing" },
                { value: "cleared", label: "Cleared" },
                { value: "all", label: "All" },
              ]}
            />
            <MoreFilters active={[severity, rule, device].filter((value) => value !== "").length}>
              <NativeSelect
                size="xs"
                aria-label="Severity"
                value={chosenSeverity ?? ""}
                onChange={({ currentTarget }) => change({ severity: currentTarget.value })}
                data={[
                  { value: "", label: "Any severity" },
                  ...Severity.options.toReversed().map((value) => ({ value, label: value })),
                ]}
              />
              <NativeSelect
                size="xs"
                maw={240}
                aria-label="Rule"
                value={rule}
                onChange={({ currentTarget }) => change({ rule: currentTarget.value })}
                data={ruleChoices(rules, rule)}
              />
              <FilterInput
                aria-label="Device"
                placeholder="Device ID"
                filter={device}
                onFilter={(changed) => change({ device: changed.trim() })}
                error={!isDevice && "This is no device ID."}
              />
            </MoreFilters>
          </Group>
        }
        error={error}
        failure="The alerts could not be read"
        onRetry={() => void refetch()}
        isPending={isPending}
        empty={
          (data ?? []).length === 0 ? (
            isNarrowed ? (
              <EmptyState
                Icon={Bell}
                title="No alert matches"
                next="Show all of them"
                onNext={() => change({ severity: "", rule: "", device: "" })}
              />
            ) : (
              <EmptyState
                Icon={Bell}
                title={chosenState === "firing" ? "Nothing fires" : "There are no such alerts"}
                next="Rules"
                onNext={() => navigate("/alerts/rules")}
              >
                A rule holds for each device by itself. While it does, its alert is here.
              </EmptyState>
            )
          ) : null
        }
        after={
          data !== undefined &&
          data.length >= mostListed && (
            <Text size="sm" c="dimmed" mt="sm">
              The newest {countText(mostListed)}. Filters show others.
            </Text>
          )
        }
      >
        <Card flush>
          <DataTable
            label="Alerts"
            minWidth={820}
            columns={columnsOf(selected, select).filter(
              ({ heading }) => heading !== "Cleared" || chosenState !== "firing",
            )}
            rows={chosenState === "firing" ? worstFirst(data ?? []) : (data ?? [])}
            keyOf={({ id }) => id}
          />
        </Card>
      </ListTab>
      {selected.length > 0 && (
        <SelectionBar
          count={selected.length === 1 ? "1 alert" : `${countText(selected.length)} alerts`}
          onClear={() => setWanted(new Set())}
        >
          {selected.length < open.length && (
            <Button size="xs" variant="subtle" onClick={() => setWanted(new Set(open.map(({ id }) => id)))}>
              Select all
            </Button>
          )}
          <Button
            size="xs"
            variant="subtle"
            leftSection={<Check size={16} />}
            onClick={() => setAcknowledged(selected)}
          >
            Acknowledge
          </Button>
        </SelectionBar>
      )}
      {acknowledged !== null && (
        <Acknowledge
          alerts={acknowledged}
          onDone={() => setWanted(new Set())}
          onClose={() => setAcknowledged(null)}
        />
      )}
    </>
  );
}

/** Rules to choose from; the built-in one is among them, and one that was deleted if it is chosen. */
function ruleChoices(rules: readonly AlertRule[], chosen: string) {
  const choices = [
    { value: "", label: "Any rule" },
    ...rules.map(({ id, name }) => ({ value: id, label: name })),
    { value: meshRuleId, label: "The mesh" },
  ];
  const isListed = choices.some(({ value }) => value === chosen);
  return isListed ? choices : [...choices, { value: chosen, label: `The rule ${shortId(chosen)}` }];
}

/** Whether somebody can acknowledge it. */
function isOpen({ state, acknowledged_at }: Alert): boolean {
  return state === "firing" && acknowledged_at === null;
}

function columnsOf(
  selected: readonly Alert[],
  select: (id: string, isSelected: boolean) => void,
): readonly Column<Alert>[] {
  return [
    {
      heading: "Selection",
      hidesHeading: true,
      cell: (alert) =>
        isOpen(alert) && (
          <Checkbox
            aria-label={`Select ${alert.rule_name}, ${alertDeviceText(alert)}`}
            checked={selected.includes(alert)}
            onChange={({ currentTarget }) => select(alert.id, currentTarget.checked)}
          />
        ),
    },
    {
      heading: "Alert",
      namesRow: true,
      cell: ({ id, rule_name }) => (
        <RowLink href={`/alerts/${id}`} lines={2}>
          {rule_name}
        </RowLink>
      ),
    },
    {
      heading: "Severity",
      cell: ({ severity }) => <StateBadge look={severityLooks[severity]}>{severity}</StateBadge>,
    },
    {
      heading: "Device",
      cell: (alert) =>
        alert.device_id === null ? alertDeviceText(alert) : <DeviceIdLink id={alert.device_id} />,
    },
    {
      heading: "Value",
      style: { ta: "end" },
      cell: ({ value }) => (
        <Text span size="sm" lineClamp={1}>
          {alertValueText(value) || "–"}
        </Text>
      ),
    },
    {
      heading: "State",
      cell: (alert) => <StateBadge look={alertLook(alert)}>{alertStateText(alert)}</StateBadge>,
    },
    { heading: "Since", cell: ({ since }) => <RelativeTime at={since} /> },
    {
      heading: "Cleared",
      cell: ({ cleared_at }) => (cleared_at === null ? "–" : <RelativeTime at={cleared_at} />),
    },
  ];
}
