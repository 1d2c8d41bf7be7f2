import type { Alert } from "@devmesh/contracts/model/alert";
import { SeriesTopic } from "@devmesh/contracts/model/series";
import { Sparkline } from "../../components/sparkline.tsx";
import { useSeries } from "../data/use-series.ts";
import styles from "./alerts.module.css";
import { useRules } from "./use-alerts.ts";

/** The course of the last hour of the number that an alert is about; nothing where its rule has no number. */
export function AlertCourse({ alert: { rule_id, device_id } }: { readonly alert: Alert }) {
  const { data: rules } = useRules();
  const when = rules?.find(({ id }) => id === rule_id)?.when;
  // A rule may be on several topics, of which the alert does not name one.
  const isOne = when?.kind === "value" && SeriesTopic.safeParse(when.topic).success;
  const { data } = useSeries(
    {
      device_ids: device_id === null ? [] : [device_id],
      topic: isOne ? when.topic : "",
      pointer: isOne ? when.pointer : "",
      fn: ["avg"],
      range: "PT1H",
    },
    isOne && device_id !== null,
  );
  const points = data?.series[0]?.points ?? [];
  if (data === undefined || points.length < 2) return null;
  return (
    <span className={styles.course}>
      <Sparkline
        times={points.map(([at]) => Date.parse(String(at)))}
        values={points.map(([, value]) => (typeof value === "number" ? value : null))}
        from={data.from}
        to={data.to}
      />
    </span>
  );
}
