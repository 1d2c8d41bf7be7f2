import type { ChartedNumbers } from "./charted-records.ts";
import { mostTopics } from "./topic-numbers.ts";

/** Notes on a chart: how many records it is made of, and which are left out. */
export function chartNotes(numbers: ChartedNumbers | null, isReading: boolean, isLive: boolean): string {
  if (numbers === null) return "";
  const { records, isCut, hasMoreTopics } = numbers;
  const count = records === 1 ? "1 record" : `${records.toLocaleString("en")} records`;
  const notes = [
    isReading
      ? `${count} read, reading on.`
      : isCut
        ? `Of the newest ${count}: there are earlier ones in this range, which a narrower one shows.`
        : `${count} read.`,
    isLive ? "Live." : "",
    hasMoreTopics ? `No more than ${mostTopics} topics are held.` : "",
  ];
  return notes.filter((note) => note !== "").join(" ");
}
