import styles from "./sparkline.module.css";

/** Properties of {@link Sparkline}. */
interface SparklineProps {
  /** Ascending, in any unit. */
  readonly times: readonly number[];
  /** One for each time; null for none. */
  readonly values: readonly (number | null)[];
  /** The shown stretch of time. */
  readonly from: number;
  readonly to: number;
}

const width = 100;
const height = 28;
/** Room for the stroke at the edges. */
const inset = 2;

/** The course of a value without axes; the value itself is beside it. */
export function Sparkline({ times, values, from, to }: SparklineProps) {
  const points: [number, number][] = [];
  let least = Number.POSITIVE_INFINITY;
  let most = Number.NEGATIVE_INFINITY;
  for (const [at, time] of times.entries()) {
    const value = values[at];
    if (value == null || time < from) continue;
    points.push([time, value]);
    least = Math.min(least, value);
    most = Math.max(most, value);
  }
  if (points.length < 2) return <div className={styles.none} />;
  // A course that is younger than the stretch of time takes all of the width.
  const begin = Math.max(from, points[0]?.[0] ?? from);
  const x = (time: number) => (((time - begin) / (to - begin || 1)) * width).toFixed(2);
  const range = most - least;
  const y = (value: number) =>
    (range === 0 ? height - 6 : height - inset - ((value - least) / range) * (height - 2 * inset)).toFixed(2);
  const line = points.map(([time, value]) => `${x(time)},${y(value)}`);
  const [first, last] = [points[0], points.at(-1)];
  return (
    <svg
      className={styles.line}
      viewBox={`0 0 ${width} ${height}`}
      preserveAspectRatio="none"
      aria-hidden="true"
    >
      <path
        className={styles.area}
        d={`M${x(first?.[0] ?? 0)},${height} L${line.join(" L")} L${x(last?.[0] ?? 0)},${height} Z`}
      />
      <polyline points={line.join(" ")} fill="none" vectorEffect="non-scaling-stroke" />
    </svg>
  );
}
