import type { BoardPanel } from "@devmesh/contracts/model/board";
import type { SeriesFunction } from "@devmesh/contracts/model/series";
import { durationAsTyped } from "../../components/typed-duration.ts";
import { placeName } from "../data/device-choice.ts";

/** What people call the functions. */
export const functionNames: Readonly<Record<SeriesFunction, string>> = {
  avg: "Mean",
  min: "Min",
  max: "Max",
  sum: "Sum",
  count: "Count",
  first: "First",
  last: "Last",
};

/** The heading of a panel: its title, else what it shows. */
export function panelTitle({ title, topic, pointer }: BoardPanel): string {
  return title ?? placeName({ topic, pointer });
}

/** How the numbers of a panel come about: "Mean, last 24 h". */
export function panelSubject({ fn, range }: BoardPanel): string {
  return `${functionNames[fn]}, last ${rangeText(range)}`;
}

/** A duration in words, an hour and a day in those of the controls: "24 h". */
export function rangeText(range: string): string {
  return range === "P1D" ? "24 h" : durationAsTyped(range);
}
