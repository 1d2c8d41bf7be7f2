import type { Alert } from "@devmesh/contracts/model/alert";
import type { UseQueryResult } from "@tanstack/react-query";
import { Link } from "wouter";
import { Card, MoreLink } from "../../components/card.tsx";
import { Failure } from "../../components/failure.tsx";
import { countText } from "../../components/number-text.ts";
import { RelativeTime } from "../../components/relative-time.tsx";
import { StateBadge } from "../../components/state.tsx";
import { alertDeviceText, alertLook, alertStateText, alertValueText, worstFirst } from "./alert-words.ts";
import styles from "./alerts.module.css";
import { mostFiring, useAlerts, useFiringAlerts } from "./use-alerts.ts";

/** Rows that are shown. */
const shown = 5;

/** The worst alerts that fire; nothing if none does. */
export function FiringCard() {
  return <Firing query={useFiringAlerts()} href="/alerts" byRule />;
}

/** What fires for a device; nothing if no rule does. */
export function DeviceAlerts({ id }: { readonly id: string }) {
  return <Firing query={useAlerts({ state: "firing", device_id: id })} href={`/alerts?device=${id}`} />;
}

interface FiringProps {
  readonly query: UseQueryResult<readonly Alert[]>;
  /** Where all of them are. */
  readonly href: string;
  /** Alerts of a rule are one row; each device has its own page. */
  readonly byRule?: true;
}

function Firing({ query: { data: alerts = [], error, refetch }, href, byRule }: FiringProps) {
  // Nothing would look as if nothing fired.
  if (error !== null)
    return <Failure error={error} title="What fires could not be read" onRetry={() => void refetch()} />;
  if (alerts.length === 0) return null;
  const count = `${countText(alerts.length)}${alerts.length < mostFiring ? "" : " or more"}`;
  const groups = [...Map.groupBy(worstFirst(alerts), ({ id, rule_id }) => (byRule ? rule_id : id)).values()];
  return (
    <Card
      title={alerts.length === 1 ? "1 alert fires" : `${count} alerts fire`}
      actions={<MoreLink href={href}>All</MoreLink>}
      flush
    >
      <ul className={styles.firing} aria-label="Firing alerts">
        {groups.slice(0, shown).map((group) => (
          <Row key={group[0]?.id} alerts={group} namesDevice={byRule === true} />
        ))}
      </ul>
    </Card>
  );
}

interface RowProps {
  /** Of one rule, the worst first. */
  readonly alerts: readonly Alert[];
  readonly namesDevice: boolean;
}

function Row({ alerts, namesDevice }: RowProps) {
  const [alert] = alerts;
  if (alert === undefined) return null;
  const isOne = alerts.length === 1;
  const facts = [namesDevice && alertDeviceText(alert), alertValueText(alert.value)].filter(Boolean);
  return (
    <li>
      <StateBadge look={alertLook(alert)}>
        {alert.acknowledged_at === null ? alert.severity : alertStateText(alert)}
      </StateBadge>
      <Link href={isOne ? `/alerts/${alert.id}` : `/alerts?rule=${alert.rule_id}`}>{alert.rule_name}</Link>
      <small>{isOne ? facts.join(", ") : `${countText(alerts.length)} devices`}</small>
      <small>
        <RelativeTime at={alert.since} />
      </small>
    </li>
  );
}
