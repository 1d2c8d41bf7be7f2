import { type FleetSummary, silentHours } from "@devmesh/contracts/model/fleet";
import { NativeSelect } from "@mantine/core";
import { useState } from "react";
import { Link } from "wouter";
import { useApi } from "../../api/api-context.tsx";
import { queryKeys } from "../../api/query-keys.ts";
import { useReading } from "../../api/use-reading.ts";
import { Card } from "../../components/card.tsx";
import { Failure } from "../../components/failure.tsx";
import { countText } from "../../components/number-text.ts";
import { RelativeTime } from "../../components/relative-time.tsx";
import { StateDot, Tag } from "../../components/state.tsx";
import { Waiting } from "../../components/waiting.tsx";
import { devicesWhere } from "../devices/shared/device-conditions.ts";
import styles from "./home.module.css";

/** How often the devices are read, in milliseconds: silence has no frame. */
const readMs = 30_000;
/** Devices that are read for those that have been silent for longest. */
const readDevices = 100;
const shown = 6;

/** The devices that have been silent for longest, and how many there are. */
export function SilentCard({ fleet }: { readonly fleet: FleetSummary | null }) {
  const api = useApi();
  const [hours, setHours] = useState<number>(silentHours[0]);
  const condition = { silent_for: `PT${hours}H` };
  const { data, error, refetch } = useReading({
    queryKey: [...queryKeys.silentDevices, hours],
    queryFn: ({ signal }) =>
      api.call("listDevices", { query: { where: condition, limit: readDevices }, signal }),
    refetchInterval: readMs,
    staleTime: 0,
  });
  const silent = fleet?.silent.find((each) => each.hours === hours)?.devices ?? data?.length;
  const longest = data?.toSorted((one, other) => sinceOf(one).localeCompare(sinceOf(other))).slice(0, shown);
  return (
    <Card
      title="Silent devices"
      href={devicesWhere(condition)}
      leads="All"
      flush
      mark={silent !== undefined && <Tag>{countText(silent)}</Tag>}
      actions={
        <NativeSelect
          aria-label="Not seen for"
          size="xs"
          w="4.75rem"
          value={String(hours)}
          onChange={(event) => setHours(Number(event.currentTarget.value))}
          data={silentHours.map((each) => ({
            value: String(each),
            label: each < 48 ? `${each} h` : `${each / 24} days`,
          }))}
        />
      }
    >
      <Failure error={error} title="The devices could not be read" onRetry={() => void refetch()} />
      {data === undefined && error === null && <Waiting rows={shown} />}
      {longest?.length === 0 && <p className={styles.quiet}>None: every device was seen in this time.</p>}
      <ul className={styles.rows} aria-label="Silent devices">
        {longest?.map(({ id, name, last_seen }) => (
          <li key={id}>
            <StateDot look="idle" />
            <Link href={`/devices/${id}`} className={`${styles.rowLink} ${styles.id} ${styles.cut}`}>
              {id}
            </Link>
            <span className={`${styles.what} ${styles.cut}`}>{name}</span>
            <span className={styles.aside}>
              <RelativeTime at={last_seen} />
            </span>
          </li>
        ))}
      </ul>
    </Card>
  );
}

/** Since when a device is silent: a device that never connected since its creation. */
function sinceOf({
  last_seen,
  created_at,
}: {
  readonly last_seen: string | null;
  readonly created_at: string;
}) {
  return last_seen ?? created_at;
}
