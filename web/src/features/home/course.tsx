import type { MeshHistory, MeshMinute } from "@devmesh/contracts/model/mesh-history";
import { type PointerEvent, useMemo, useState } from "react";
import { Link } from "wouter";
import { countText } from "../../components/number-text.ts";
import { dayTimeText } from "../../components/time-in-words.ts";
import styles from "./course.module.css";

/** The members of a minute that are numbers. */
export type CourseName = Exclude<keyof MeshMinute, "at">;

/** A point of a line. */
export interface CoursePoint {
  readonly at: number;
  readonly value: number;
}

/** A figure over the last day, at most. */
export interface CourseData {
  /** Minutes that are missing or not known interrupt the lines. */
  readonly lines: readonly (readonly CoursePoint[])[];
  /** The stretch of time that is shown, in milliseconds. */
  readonly spanMs: number;
  /** Unix ms of the last minute. */
  readonly end: number;
  /** The highest value of a minute; 0 without one. */
  readonly highest: number;
}

const hourMs = 60 * 60_000;
/** The shortest stretch of time that is shown, in milliseconds. */
const leastMs = 5 * 60_000;
/** A gap in the minutes that interrupts a line, in milliseconds. */
const gapMs = 90_000;
/** Points of a day that are drawn. */
const drawnPoints = 240;

/** The known values of a day as lines: minutes that are missing or not known interrupt them. */
export function courseLines(history: MeshHistory, name: CourseName): CoursePoint[][] {
  const lines: CoursePoint[][] = [];
  let last = Number.NEGATIVE_INFINITY;
  for (const minute of history) {
    const at = Date.parse(minute.at);
    const value = minute[name];
    if (value === null) continue;
    if (at - last > gapMs) lines.push([]);
    lines.at(-1)?.push({ at, value });
    last = at;
  }
  return lines;
}

/** From the first known value to the end, in whole hours from one on: a mesh that is an hour old has no day to show. */
export function courseSpan(lines: readonly CoursePoint[][], end: number): number {
  const known = end - (lines[0]?.[0]?.at ?? end);
  return known < hourMs ? Math.max(leastMs, known) : Math.min(24, Math.ceil(known / hourMs)) * hourMs;
}

/** What a course of the history is drawn from. */
export function courseOf(history: MeshHistory, name: CourseName): CourseData {
  const lines = courseLines(history, name);
  const end = Date.parse(history.at(-1)?.at ?? "");
  const highest = Math.max(0, ...lines.flat().map(({ value }) => value));
  return { lines, spanMs: courseSpan(lines, end), end, highest };
}

/** Properties of {@link Course}. */
interface CourseProps {
  readonly course: CourseData;
  /** Where the figure leads; the pointer reaches the link of the figure through its course. */
  readonly href: string;
  /** A value in words, as in "1,183 online". */
  readonly words: (value: number) => string;
  /** Nothing is known yet. */
  readonly isLoading?: boolean;
  /** With labels of both axes. */
  readonly labelled?: boolean;
}

/** Size of a drawing, which is stretched to its place. */
const [width, height] = [1_000, 100];
/** Part of the height that is free above the highest value. */
const headRoom = 0.08;

/** The course of a figure, with what it was where the pointer is. */
export function Course({ course, href, words, isLoading = false, labelled = false }: CourseProps) {
  const { lines, spanMs, end, highest } = course;
  const [pointed, setPointed] = useState<CoursePoint | null>(null);
  const drawn = useMemo(() => lines.map((line) => thinned(line, spanMs / drawnPoints)), [lines, spanMs]);
  if (lines.length === 0)
    return (
      <div className={styles.course} data-labelled={labelled || undefined}>
        {!isLoading && <p className={styles.none}>The course begins in a minute.</p>}
      </div>
    );
  const begin = end - spanMs;
  const base = baseOf(lines, highest);
  const top = highest === base ? base + 1 : highest + (highest - base) * headRoom;
  const x = (at: number) => ((at - begin) / (end - begin)) * width;
  const y = (value: number) => height - ((value - base) / (top - base)) * height;
  const marks = labelled ? marksBetween(base, top) : [];

  const point = ({ currentTarget, clientX }: PointerEvent) => {
    const { left, width: shown } = currentTarget.getBoundingClientRect();
    setPointed(nearest(lines, begin + ((clientX - left) / shown) * (end - begin)));
  };
  return (
    <div className={styles.course} data-labelled={labelled || undefined} aria-hidden="true">
      <Link
        href={href}
        tabIndex={-1}
        className={styles.field}
        onPointerMove={point}
        onPointerLeave={() => setPointed(null)}
      >
        <svg
          viewBox={`0 0 ${width} ${height}`}
          preserveAspectRatio="none"
          className={styles.drawing}
          aria-hidden="true"
        >
          {marks.map((mark) => (
            <line key={mark} x1={0} x2={width} y1={y(mark)} y2={y(mark)} className={styles.mark} />
          ))}
          {drawn.map((points) => {
            const text = points.map(({ at, value }) => `${x(at).toFixed(1)},${y(value).toFixed(1)}`);
            const [first, last] = [points[0]?.at ?? begin, points.at(-1)?.at ?? begin];
            return (
              <g key={first}>
                <path
                  className={styles.area}
                  d={`M${x(first).toFixed(1)},${height} L${text.join(" L")} L${x(last).toFixed(1)},${height}Z`}
                />
                <polyline className={styles.line} points={text.join(" ")} />
              </g>
            );
          })}
        </svg>
        {marks.map((mark) => (
          <span key={mark} className={styles.markText} style={{ top: `${y(mark)}%` }}>
            {countText(mark)}
          </span>
        ))}
        {pointed !== null && (
          <span className={styles.cursor} style={{ left: `${x(pointed.at) / 10}%` }}>
            <i style={{ top: `${y(pointed.value)}%` }} />
            <span data-side={pointed.at > (begin + end) / 2 ? "start" : "end"}>
              {dayTimeText(pointed.at)} <b>{words(pointed.value)}</b>
            </span>
          </span>
        )}
      </Link>
      {labelled && (
        <div className={styles.times}>
          {[0, 0.25, 0.5, 0.75].map((part) => (
            <span key={part}>{dayTimeText(begin + part * (end - begin))}</span>
          ))}
          <span>now</span>
        </div>
      )}
    </div>
  );
}

/** Means of equal stretches of time, of which a line has one each where it is longer. */
function thinned(line: readonly CoursePoint[], stretchMs: number): readonly CoursePoint[] {
  const means: CoursePoint[] = [];
  for (const stretch of Map.groupBy(line, ({ at }) => Math.floor(at / stretchMs)).values()) {
    const sum = stretch.reduce((total, { value }) => total + value, 0);
    const last = stretch.at(-1);
    if (last !== undefined) means.push({ at: last.at, value: sum / stretch.length });
  }
  return means;
}

/** Where an axis begins: at 0, but for values that hardly change, as devices that are online do. */
function baseOf(lines: CourseData["lines"], highest: number): number {
  const least = Math.min(...lines.flat().map(({ value }) => value));
  if (least < highest * 0.7) return 0;
  return Math.max(0, Math.floor(least - Math.max(1, (highest - least) * 1.5)));
}

/** One or two round numbers between two others. */
function marksBetween(from: number, to: number): number[] {
  const power = 10 ** Math.floor(Math.log10((to - from) / 2));
  const step = [5, 2, 1].map((factor) => factor * power).find((each) => each <= (to - from) / 2) ?? power;
  const marks: number[] = [];
  for (let mark = Math.ceil(from / step + 0.2) * step; mark < to - (to - from) * 0.15; mark += step)
    marks.push(mark);
  return marks.filter((mark) => Number.isInteger(mark)).slice(0, 3);
}

/** The known value that is nearest to a time. */
function nearest(lines: CourseData["lines"], at: number): CoursePoint | null {
  let found: CoursePoint | null = null;
  for (const line of lines)
    for (const point of line)
      if (found === null || Math.abs(point.at - at) < Math.abs(found.at - at)) found = point;
  return found;
}
