import { z } from "zod";
import { maxConditionLength, WrittenCondition } from "./condition-text.ts";
import { DeviceCondition } from "./device-condition.ts";
import { DeviceId } from "./device-id.ts";
import { durationBetween } from "./duration.ts";
import { maxSeriesOfAnswer, SeriesPointer, SeriesTopic, seriesFunctions } from "./series.ts";
import { Timestamp } from "./time.ts";
import { wellFormedText } from "./well-formed-text.ts";

/** Bounds of boards (api.md, Boards). Positions are in cells of the grid. */
export const boardBounds = { boards: 100, panels: 40, columns: 12, rows: 400, panelRows: 12 } as const;

const BoardName = wellFormedText(60)
  .regex(/^\S(.*\S)?$/u, "must be one line without blanks around it")
  .describe("What people call it.");

const panelWith = <T extends z.ZodType>(where: T) =>
  z
    .strictObject({
      kind: z.enum(["chart", "value"]).describe("A line for each device, or one number of them all."),
      title: wellFormedText(80).optional().describe("Its heading; by default what it shows."),
      where: where
        .refine(
          (where) => JSON.stringify(where).length <= maxConditionLength,
          `must have at most ${maxConditionLength} characters as JSON`,
        )
        .optional()
        .describe("Devices that meet a condition; `{}` is all."),
      device_ids: z
        .array(DeviceId)
        .min(1)
        .max(maxSeriesOfAnswer)
        .optional()
        .describe("In place of `where`: these devices."),
      topic: SeriesTopic.describe("Relative to `db/<device id>/`."),
      pointer: SeriesPointer.describe("JSON pointer to the numbers; empty for messages that are numbers."),
      fn: z
        .enum(seriesFunctions)
        .describe(
          "Of each span of a chart, or of the whole range of a value. `first` and `last` of several devices are the mean of theirs.",
        ),
      range: durationBetween("PT1M", "P731D").describe("How far back from now it reaches."),
      x: z
        .int()
        .min(0)
        .max(boardBounds.columns - 1)
        .describe("Number of the column of its left edge, from 0."),
      y: z
        .int()
        .min(0)
        .max(boardBounds.rows - 1)
        .describe("Number of the row of its upper edge, from 0."),
      w: z.int().min(1).max(boardBounds.columns).describe("Its number of columns."),
      h: z.int().min(1).max(boardBounds.panelRows).describe("Its number of rows."),
    })
    .refine(({ where, device_ids }) => (where === undefined) !== (device_ids === undefined), {
      message: "must have either `where` or `device_ids`",
    })
    .refine(({ x, w }) => x + w <= boardBounds.columns, {
      message: `must end within the ${boardBounds.columns} columns`,
      path: ["w"],
    });
const panel = "Numbers of some devices, and their place on a board.";

const BoardPanelInput = panelWith(WrittenCondition).meta({ id: "BoardPanelInput", description: panel });

const BoardPanel = panelWith(DeviceCondition).meta({ id: "BoardPanel", description: panel });
export type BoardPanel = z.output<typeof BoardPanel>;

const panelsOf = <T extends z.ZodType>(one: T) =>
  z.array(one).max(boardBounds.panels).describe("In the order of adding.");

const example = {
  name: "Cold chain, north",
  panels: [
    {
      kind: "chart" as const,
      title: "Temperature",
      where: { labels: { all: ["fridge"] } },
      topic: "temp",
      pointer: "/celsius",
      fn: "avg" as const,
      range: "P1D",
      x: 0,
      y: 0,
      w: 8,
      h: 3,
    },
  ],
};

const shown = {
  id: z.string().describe("Id of the board in URLs."),
  name: BoardName,
  revision: z.int().min(1).describe("Number of its state: 1 at the creation; each change increments it."),
  created_at: Timestamp.describe("When it was created."),
  changed_at: Timestamp.describe("When it was changed last."),
};
const shownExample = {
  id: "7b1d1c1e-6a1f-4f3c-9f55-0f3f8f2f4c11",
  name: example.name,
  revision: 3,
  created_at: "2026-01-31T12:00:00.000Z",
  changed_at: "2026-01-31T12:30:00.000Z",
};

/** Charts and values that people look at together. */
export const Board = z.object({ ...shown, panels: panelsOf(BoardPanel) }).meta({
  id: "Board",
  description: "Charts and values in a grid of 12 columns.",
  example: { ...shownExample, panels: example.panels },
});
export type Board = z.output<typeof Board>;

/** A board in a list. */
export const ListedBoard = z
  .object({ ...shown, panels: z.int().min(0).describe("Number of its panels.") })
  .meta({
    id: "ListedBoard",
    description: "A board without its panels.",
    example: { ...shownExample, panels: 1 },
  });
export type ListedBoard = z.output<typeof ListedBoard>;

/** The body of `POST /boards`. */
export const BoardInput = z
  .strictObject({ name: BoardName, panels: panelsOf(BoardPanelInput).prefault([]) })
  .meta({ id: "BoardInput", description: "A board to create.", example });

/** The body of `POST /boards/:id`. */
export const BoardPatch = z
  .strictObject({
    name: BoardName.optional(),
    panels: panelsOf(BoardPanelInput).optional(),
    revision: z
      .int()
      .min(1)
      .optional()
      .describe("Number of the revision that was read: refused if it has changed since."),
  })
  .meta({
    id: "BoardPatch",
    description: "Changes of a board; what is left out stays, and `panels` replaces all of them.",
    example: { name: "Cold chain", revision: 3 },
  });
