import type { Alert, AlertSummary } from "@devmesh/contracts/model/alert";
import { Severity } from "@devmesh/contracts/model/rule";
import { type ReactNode, Suspense } from "react";
import { Link } from "wouter";
import { Card, MoreLink } from "../../components/card.tsx";
import { Failure } from "../../components/failure.tsx";
import { lazyView } from "../../components/lazy-view.ts";
import { countText } from "../../components/number-text.ts";
import { RelativeTime } from "../../components/relative-time.tsx";
import { StateBadge } from "../../components/state.tsx";
import {
  alertDeviceText,
  alertLook,
  alertStateText,
  alertValueText,
  severityLooks,
  worstFirst,
} from "./alert-words.ts";
import styles from "./alerts.module.css";
import { mostListed, useAlertSummary, useAlerts } from "./use-alerts.ts";

const AlertCourse = lazyView(async () => (await import("./alert-course.tsx")).AlertCourse);

/** Rows that are shown. */
const shown = 5;

type FiringRule = AlertSummary["rules"][number];

/** What fires, a row for each rule, the worst first; nothing if none does. */
export function FiringCard() {
  const { data, error, refetch } = useAlertSummary();
  return (
    <Firing error={error} onRetry={() => void refetch()} count={data?.firing ?? 0} href="/alerts">
      {worstRules(data?.rules ?? [])
        .slice(0, shown)
        .map((rule) => (
          <RuleRow key={rule.rule_id} rule={rule} />
        ))}
    </Firing>
  );
}

/** What fires for a device; nothing if no rule does. */
export function DeviceAlerts({ id }: { readonly id: string }) {
  const { data = [], error, refetch } = useAlerts({ state: "firing", device_id: id });
  return (
    <Firing
      error={error}
      onRetry={() => void refetch()}
      count={data.length}
      isMore={data.length >= mostListed}
      href={`/alerts?device=${id}`}
    >
      {worstFirst(data)
        .slice(0, shown)
        .map((alert) => (
          <AlertRow key={alert.id} alert={alert} facts={alertValueText(alert.value)} />
        ))}
    </Firing>
  );
}

interface FiringProps {
  readonly error: unknown;
  readonly onRetry: () => void;
  readonly count: number;
  /** There may be more than are counted. */
  readonly isMore?: boolean;
  /** Where all of them are. */
  readonly href: string;
  /** Rows. */
  readonly children: ReactNode;
}

function Firing({ error, onRetry, count, isMore = false, href, children }: FiringProps) {
  return (
    <>
      {/* Nothing would look as if nothing fired. */}
      <Failure error={error} title="What fires could not be read" onRetry={onRetry} />
      {count > 0 && (
        <Card
          title={count === 1 ? "1 alert fires" : `${countText(count)}${isMore ? " or more" : ""} alerts fire`}
          actions={<MoreLink href={href}>All</MoreLink>}
          flush
        >
          <ul className={styles.firing} aria-label="Firing alerts">
            {children}
          </ul>
        </Card>
      )}
    </>
  );
}

/** A rule that fires, with its newest alert. */
function RuleRow({ rule }: { readonly rule: FiringRule }) {
  const { rule_id, rule_name, severity, firing, unacknowledged } = rule;
  const { data: [newest] = [] } = useAlerts({ state: "firing", rule_id }, 1);
  if (firing === 1 && newest !== undefined) {
    const facts = [alertDeviceText(newest), alertValueText(newest.value)];
    return <AlertRow alert={newest} facts={facts.filter((fact) => fact !== "").join(", ")} />;
  }
  return (
    <li>
      <StateBadge look={unacknowledged > 0 ? severityLooks[severity] : "idle"}>
        {unacknowledged > 0 ? severity : "acknowledged"}
      </StateBadge>
      <Link href={`/alerts?rule=${rule_id}`}>{rule_name}</Link>
      <Suspense>{newest !== undefined && <AlertCourse alert={newest} />}</Suspense>
      <small>{firing === 1 ? "1 device" : `${countText(firing)} devices`}</small>
      <small>{newest !== undefined && <RelativeTime at={newest.since} />}</small>
    </li>
  );
}

function AlertRow({ alert, facts }: { readonly alert: Alert; readonly facts: string }) {
  return (
    <li>
      <StateBadge look={alertLook(alert)}>
        {alert.acknowledged_at === null ? alert.severity : alertStateText(alert)}
      </StateBadge>
      <Link href={`/alerts/${alert.id}`}>{alert.rule_name}</Link>
      <Suspense>
        <AlertCourse alert={alert} />
      </Suspense>
      <small>{facts}</small>
      <small>
        <RelativeTime at={alert.since} />
      </small>
    </li>
  );
}

/** Rules of which nobody has acknowledged all come first, then the worse ones, then those with more alerts. */
function worstRules(rules: readonly FiringRule[]): readonly FiringRule[] {
  const rank = ({ unacknowledged, severity }: FiringRule) =>
    (unacknowledged > 0 ? 10 : 0) + Severity.options.indexOf(severity);
  return rules.toSorted((one, other) => rank(other) - rank(one) || other.firing - one.firing);
}
