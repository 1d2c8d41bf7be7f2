import type { FleetSummary } from "@devmesh/contracts/model/fleet";
import { Link } from "wouter";
import { Card } from "../../components/card.tsx";
import { countText, shareText } from "../../components/number-text.ts";
import { Waiting } from "../../components/waiting.tsx";
import { devicesWhere } from "../devices/shared/device-conditions.ts";
import { type FirmwareShare, firmwareShares } from "./fleet-facts.ts";
import styles from "./home.module.css";

/** How strong the colour of each version is, in percent: each step can be seen, also between the last two. */
const strengths = [100, 76, 57, 41, 28, 18];

/** Properties of {@link VersionsCard}. */
interface VersionsCardProps {
  readonly fleet: FleetSummary | null;
  /** The mesh was read without the fleet. */
  readonly isUnknown: boolean;
}

/** The versions of the firmware as shares, each of which leads to its devices. */
export function VersionsCard({ fleet, isUnknown }: VersionsCardProps) {
  const shares = fleet === null ? [] : firmwareShares(fleet);
  const all = fleet?.devices ?? 0;
  const colour = (nth: number) => ({ ["--share" as string]: strengths[Math.min(nth, strengths.length - 1)] });
  return (
    <Card title="Firmware" href="/devices?sort=firmware" leads="All versions">
      {fleet === null &&
        (isUnknown ? "The versions are not known: devices does not answer." : <Waiting rows={4} />)}
      {shares.length > 0 && (
        <div className={styles.shares} aria-hidden="true">
          {shares.map(({ version, devices }, nth) => (
            <i
              key={version ?? ""}
              data-none={version === null || undefined}
              data-others={version === "others" || undefined}
              style={{ ...colour(nth), flex: `${devices} 1 0` }}
            />
          ))}
        </div>
      )}
      <ul className={styles.versions} aria-label="Versions">
        {shares.map(({ version, devices }, nth) => (
          <li key={version ?? ""}>
            <i
              data-none={version === null || undefined}
              data-others={version === "others" || undefined}
              style={colour(nth)}
              aria-hidden="true"
            />
            <span className={styles.cut}>
              <Version version={version} />
            </span>
            <span>{countText(devices)}</span>
            <span>{shareText(devices / Math.max(1, all))}</span>
          </li>
        ))}
      </ul>
      {fleet?.devices === 0 && "There are no devices yet."}
    </Card>
  );
}

function Version({ version }: Pick<FirmwareShare, "version">) {
  if (version === "others") return "others";
  return (
    <Link href={devicesWhere({ version: { in: [version] } })} title={version ?? ""}>
      {version ?? "not reported"}
    </Link>
  );
}
