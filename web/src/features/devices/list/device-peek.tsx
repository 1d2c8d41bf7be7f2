import { ChevronDown, ChevronUp, Maximize2, X } from "lucide-react";
import { Link, useLocation } from "wouter";
import { useApi } from "../../../api/api-context.tsx";
import { queryKeys } from "../../../api/query-keys.ts";
import { useReading } from "../../../api/use-reading.ts";
import { CopyButton } from "../../../components/copy-button.tsx";
import { Failure } from "../../../components/failure.tsx";
import { IconButton } from "../../../components/icon-button.tsx";
import { countText } from "../../../components/number-text.ts";
import { Peek } from "../../../components/peek.tsx";
import { RelativeTime } from "../../../components/relative-time.tsx";
import { StateBadge, Tag } from "../../../components/state.tsx";
import { Waiting } from "../../../components/waiting.tsx";
import { ActivityCard } from "../page/activity-card.tsx";
import { CallCard } from "../page/call-card.tsx";
import { ConnectionCard } from "../page/connection-card.tsx";
import type { SectionProps } from "../page/section.ts";
import { ShadowCard } from "../page/shadow-card.tsx";
import { useDeviceValues } from "../page/use-device-values.ts";
import { wordOf } from "../page/value-tiles.tsx";
import { rowOf } from "../shared/device-row.ts";
import styles from "./device-peek.module.css";

/** Values that are shown. */
const mostValues = 8;

/** Properties of {@link DevicePeek}. */
interface DevicePeekProps {
  readonly id: string;
  /** Place in the list, from 0; -1 if it is not in it. */
  readonly place: number;
  readonly count: number;
  /** Opens the device that is so many places further. */
  readonly onMove: (by: -1 | 1) => void;
  readonly onClose: () => void;
}

/** A device beside the list. */
export function DevicePeek({ id, place, count, onMove, onClose }: DevicePeekProps) {
  const api = useApi();
  const [, navigate] = useLocation();
  const { data, error, refetch } = useReading({
    queryKey: queryKeys.device(id),
    queryFn: ({ signal }) => api.call("readDevice", { params: { id }, signal }),
  });
  return (
    <Peek label={`Device ${id}`} onClose={onClose}>
      <div className={styles.header}>
        <span className={styles.place}>
          {place < 0 ? "" : `${countText(place + 1)} of ${countText(count)}`}
        </span>
        <IconButton label="Previous device" disabled={place <= 0} onClick={() => onMove(-1)}>
          <ChevronUp size={16} />
        </IconButton>
        <IconButton label="Next device" disabled={place < 0 || place >= count - 1} onClick={() => onMove(1)}>
          <ChevronDown size={16} />
        </IconButton>
        <IconButton label="Open the page of the device" onClick={() => navigate(`/devices/${id}`)}>
          <Maximize2 size={15} />
        </IconButton>
        <IconButton label="Close the panel" onClick={onClose}>
          <X size={16} />
        </IconButton>
      </div>
      <div className={styles.content}>
        <Failure error={error} title="The device could not be read" onRetry={() => void refetch()} />
        {data === undefined && error === null && <Waiting />}
        {data !== undefined && <Content key={id} device={data} />}
      </div>
    </Peek>
  );
}

function Content({ device }: SectionProps) {
  const { id, name, online } = device;
  const { labels } = rowOf(device);
  const { values = [] } = useDeviceValues(device);
  return (
    <>
      <div>
        <div className={styles.title}>
          <h2>
            <Link href={`/devices/${id}`}>{name ?? id}</Link>
          </h2>
          <StateBadge look={online ? "good" : "idle"}>{online ? "online" : "offline"}</StateBadge>
        </div>
        <div className={styles.id}>
          <code>{id}</code> <CopyButton text={id} what="the ID" />
          {labels.map((label) => (
            <Tag key={label}>{label}</Tag>
          ))}
        </div>
      </div>
      {values.length > 0 && (
        <dl className={styles.values}>
          {values.slice(0, mostValues).map(({ key, name: term, unit, value, at }) => (
            <div key={key}>
              <dt>
                {term}
                <span>
                  <RelativeTime at={at} />
                </span>
              </dt>
              <dd data-old={!online || undefined}>
                {wordOf(value)} {unit !== undefined && <span>{unit}</span>}
              </dd>
            </div>
          ))}
        </dl>
      )}
      <ShadowCard device={device} />
      <CallCard device={device} />
      <ConnectionCard device={device} />
      <ActivityCard device={device} frames={noFrames} />
    </>
  );
}

const noFrames: readonly never[] = [];
