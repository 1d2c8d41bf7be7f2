import type { Notification } from "@devmesh/contracts/model/notification";
import {
  Bell,
  CircleAlert,
  type LucideIcon,
  Megaphone,
  Plug,
  SlidersHorizontal,
  SquareTerminal,
  Unplug,
} from "lucide-react";
import { useMemo } from "react";
import { serverNow } from "../../../api/server-clock.ts";
import { Card } from "../../../components/card.tsx";
import { Failure } from "../../../components/failure.tsx";
import { dateTimeText, shortTimeText } from "../../../components/time-in-words.ts";
import { useDiagnostics } from "../shared/use-diagnostics.ts";
import { type ActivityKind, activityOf } from "./activity.ts";
import styles from "./activity-card.module.css";
import { useDeviceCalls } from "./device-calls.ts";
import type { SectionProps } from "./section.ts";

/** Lines of the card; the log has more. */
const mostLines = 8;

const icons: Readonly<Record<ActivityKind, LucideIcon>> = {
  connected: Plug,
  disconnected: Unplug,
  problem: CircleAlert,
  call: SquareTerminal,
  event: Megaphone,
  change: SlidersHorizontal,
  alert: Bell,
};

/** Properties of {@link ActivityCard}. */
interface ActivityCardProps extends SectionProps {
  /** Frames of the device, oldest first. */
  readonly frames: readonly Notification[];
}

/** What happened to a device lately: connections, problems, calls with their answers, events, changes. */
export function ActivityCard({ device, frames }: ActivityCardProps) {
  const { data: diagnostics, error, refetch } = useDiagnostics(device.id);
  const { calls } = useDeviceCalls(device, false);
  const activity = useMemo(
    () => activityOf({ diagnostics: diagnostics ?? [], frames, calls }),
    [diagnostics, frames, calls],
  );
  return (
    <Card title="Activity" href={`/devices/${device.id}/log`} leads="Log">
      <Failure error={error} title="The diagnostics could not be read" onRetry={() => void refetch()} />
      {activity.length === 0 ? (
        <p className={styles.none}>Nothing in the last hour.</p>
      ) : (
        <ol className={styles.list} aria-label="Activity">
          {activity.slice(0, mostLines).map(({ key, kind, at, title, detail }) => {
            const Icon = icons[kind];
            return (
              <li key={key} className={styles.line}>
                <Icon size={16} className={styles.icon} data-kind={kind} aria-hidden="true" />
                <span className={styles.title}>{title}</span>
                <span className={styles.detail} title={detail}>
                  {detail}
                </span>
                <time dateTime={at} title={dateTimeText(at)} className={styles.time}>
                  {shortTimeText(at, serverNow())}
                </time>
              </li>
            );
          })}
        </ol>
      )}
    </Card>
  );
}
