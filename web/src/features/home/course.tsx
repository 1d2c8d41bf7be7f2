import type { MeshHistory, MeshMinute } from "@devmesh/contracts/model/mesh-history";
import { Text } from "@mantine/core";
import { rateText } from "../../components/number-text.ts";

/** The members of a minute that are numbers. */
export type CourseName = Exclude<keyof MeshMinute, "at">;

interface CourseProps {
  readonly history: MeshHistory;
  readonly name: CourseName;
}

const width = 240;
const height = 36;
const hourMs = 60 * 60_000;

/** A point of a line. */
export interface CoursePoint {
  readonly at: number;
  readonly value: number;
}

/** The known values of a day as lines: minutes that are missing or not known interrupt them. */
export function courseLines(history: MeshHistory, name: CourseName): CoursePoint[][] {
  const lines: CoursePoint[][] = [];
  let last = Number.NEGATIVE_INFINITY;
  for (const minute of history) {
    const at = Date.parse(minute.at);
    const value = minute[name];
    if (value === null) continue;
    if (at - last > 90_000) lines.push([]);
    lines.at(-1)?.push({ at, value });
    last = at;
  }
  return lines;
}

/** Whole hours from the first known value to the end, 1 to 24: a mesh that is an hour old has no day to show. */
export function courseHours(lines: readonly CoursePoint[][], end: number): number {
  const first = lines[0]?.[0]?.at ?? end;
  return Math.min(24, Math.max(1, Math.ceil((end - first) / hourMs)));
}

/** The course of a figure over the last 24 hours, as a line with the highest value of a minute. */
export function Course({ history, name }: CourseProps) {
  const lines = courseLines(history, name);
  const highest = Math.max(0, ...lines.flat().map(({ value }) => value));
  const end = Date.parse(history.at(-1)?.at ?? "");
  if (lines.length === 0)
    return (
      <Text size="xs" c="dimmed" px={14} pb={12}>
        The course begins in a minute.
      </Text>
    );
  const hours = courseHours(lines, end);
  const x = (at: number) => width - ((end - at) / (hours * hourMs)) * width;
  const y = (value: number) => height - 1 - (highest === 0 ? 0 : value / highest) * (height - 2);
  return (
    <>
      <Text size="xs" c="dimmed" px={14} pb={4}>
        {hours} h, highest minute {rateText(highest)}
      </Text>
      <svg
        viewBox={`0 0 ${width} ${height}`}
        width="100%"
        height={height}
        preserveAspectRatio="none"
        aria-hidden="true"
      >
        {lines.map((points) => (
          <polyline
            key={points[0]?.at}
            points={points.map(({ at, value }) => `${x(at).toFixed(1)},${y(value).toFixed(1)}`).join(" ")}
            fill="none"
            stroke="var(--series-1)"
            strokeWidth="1.5"
            strokeLinecap="round"
            vectorEffect="non-scaling-stroke"
          />
        ))}
      </svg>
    </>
  );
}
