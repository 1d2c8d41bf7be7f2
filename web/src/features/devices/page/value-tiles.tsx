import { UnstyledButton } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { countText, valueText } from "../../../components/number-text.ts";
import { RelativeTime } from "../../../components/relative-time.tsx";
import { Sparkline } from "../../../components/sparkline.tsx";
import { Stat, StatStrip } from "../../../components/stat-strip.tsx";
import type { ChartedNumbers } from "../../data/charted-records.ts";
import type { DeviceValue } from "./device-values.ts";
import styles from "./value-tiles.module.css";

/** Tiles that are shown until more are asked for. */
const fewTiles = 10;

/** Properties of {@link ValueTiles}. */
interface ValueTilesProps {
  readonly values: readonly DeviceValue[];
  /** The device is offline, so its values are old. */
  readonly isOld: boolean;
  /** Their course; null before it is read. */
  readonly numbers: ChartedNumbers | null;
  /** The shown stretch of time, Unix ms. */
  readonly from: number;
  readonly to: number;
  /** Key of the value in the chart. */
  readonly chosen: string | undefined;
  readonly onChoose: (key: string) => void;
}

/** What a device published last, a tile for each value; a number is drawn large by a click. */
export function ValueTiles(props: ValueTilesProps) {
  const { values, isOld, numbers, from, to, chosen, onChoose } = props;
  const [whole, { toggle }] = useDisclosure(false);
  const shown = whole ? values : values.slice(0, fewTiles);
  return (
    <div>
      <StatStrip label="Values">
        {shown.map(({ key, topic, series, name, unit, value, at }) => {
          const topicNumbers = numbers?.topics.get(topic);
          const course = topicNumbers?.series.find((each) => each.name === series);
          const isChosen = key === chosen;
          return (
            <Stat
              key={key}
              term={name}
              value={wordOf(value)}
              aside={<RelativeTime at={at} />}
              state={isOld ? "old" : undefined}
              {...(unit !== undefined && { unit })}
              {...(typeof value === "number" && {
                choice: { isChosen, label: `Show ${name} in the chart`, onChoose: () => onChoose(key) },
              })}
            >
              {topicNumbers !== undefined && course !== undefined ? (
                <Sparkline
                  times={topicNumbers.times}
                  values={course.values}
                  from={from / 1_000}
                  to={to / 1_000}
                />
              ) : (
                <div className={styles.noCourse} />
              )}
            </Stat>
          );
        })}
      </StatStrip>
      {values.length > fewTiles && (
        <UnstyledButton className={styles.more} onClick={toggle} aria-expanded={whole}>
          {whole ? "Show fewer values" : `Show all ${countText(values.length)} values`}
        </UnstyledButton>
      )}
    </div>
  );
}

/** A value as a tile shows it. */
export function wordOf(value: DeviceValue["value"]): string {
  if (typeof value === "number") return valueText(value);
  return typeof value === "boolean" ? (value ? "yes" : "no") : value;
}
