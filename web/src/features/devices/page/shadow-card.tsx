import { useMemo } from "react";
import { Card } from "../../../components/card.tsx";
import { countText } from "../../../components/number-text.ts";
import { RelativeTime } from "../../../components/relative-time.tsx";
import { StateBadge } from "../../../components/state.tsx";
import { shadowValues } from "../shared/shadow-values.ts";
import type { SectionProps } from "./section.ts";
import styles from "./shadow-card.module.css";

/** Rows of the table; more are on the shadow's own section. */
const mostRows = 6;

/** What differs between the desired and the reported state, and a way to edit it. */
export function ShadowCard({ device }: SectionProps) {
  const { state, version, timestamp } = device.shadow;
  const values = useMemo(() => shadowValues(state.desired, state.reported), [state]);
  const differing = values.filter(({ differs }) => differs);
  const shown = (differing.length > 0 ? differing : values.filter(({ desired }) => desired !== null)).slice(
    0,
    mostRows,
  );
  return (
    <Card
      title="Shadow"
      href={`/devices/${device.id}/shadow`}
      leads="Edit"
      mark={
        differing.length > 0 && (
          <StateBadge look="warn">
            {differing.length === 1 ? "1 value not taken" : `${countText(differing.length)} values not taken`}
          </StateBadge>
        )
      }
    >
      {shown.length > 0 && (
        <table className={styles.values}>
          <thead>
            <tr>
              <th scope="col">Value</th>
              <th scope="col">Desired</th>
              <th scope="col">Reported</th>
            </tr>
          </thead>
          <tbody>
            {shown.map(({ path, desired, reported, differs }) => (
              <tr key={path} data-differs={differs || undefined}>
                <th scope="row">{path}</th>
                <td title={desired ?? undefined}>{desired ?? "–"}</td>
                <td title={reported ?? undefined}>{reported ?? "–"}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      <p className={styles.note}>
        {differing.length > mostRows && `${countText(differing.length - mostRows)} more differ. `}
        {differing.length === 0 &&
          (shown.length === 0 ? "Nothing is asked of it. " : "It has what is asked of it. ")}
        Version {version}, changed <RelativeTime at={new Date(timestamp).toISOString()} />
      </p>
    </Card>
  );
}
