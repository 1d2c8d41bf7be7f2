import { type BoardPanel, boardBounds } from "@devmesh/contracts/model/board";

/** Where a panel is, in cells of the grid. */
export type PanelPlace = Pick<BoardPanel, "x" | "y" | "w" | "h">;

/** Sizes that are not gone below: a chart needs room for its axes, a value for its digits. */
const leastSizes = { chart: { w: 3, h: 3 }, value: { w: 2, h: 2 } } as const;

/** Sizes of new panels. */
const newSizes = { chart: { w: 6, h: 4 }, value: { w: 3, h: 2 } } as const;

const { columns, rows, panelRows } = boardBounds;

function overlap(one: PanelPlace, other: PanelPlace): boolean {
  return (
    one.x < other.x + other.w &&
    other.x < one.x + one.w &&
    one.y < other.y + other.h &&
    other.y < one.y + one.h
  );
}

function below(place: PanelPlace): number {
  return place.y + place.h;
}

function between(least: number, value: number, most: number): number {
  return Math.max(least, Math.min(value, most));
}

/** A place moved by cells, kept within the grid. */
export function movedBy(place: PanelPlace, byColumns: number, byRows: number): PanelPlace {
  return {
    ...place,
    x: between(0, place.x + byColumns, columns - place.w),
    y: between(0, place.y + byRows, rows - 1),
  };
}

/** A place of another size, kept within the grid and not too small for what it shows. */
export function resizedBy(
  { kind, ...place }: PanelPlace & Pick<BoardPanel, "kind">,
  byColumns: number,
  byRows: number,
): PanelPlace {
  const least = leastSizes[kind];
  const most = columns - place.x;
  return {
    ...place,
    w: between(Math.min(least.w, most), place.w + byColumns, most),
    h: between(least.h, place.h + byRows, panelRows),
  };
}

/** The panels with one of them at another place; those in its way move down. Unchanged where they would not fit. */
export function withPlace<P extends PanelPlace>(
  panels: readonly P[],
  nth: number,
  { x, y, w, h }: PanelPlace,
): readonly P[] {
  const placed: PanelPlace[] = [{ x, y, w, h }];
  const tops = new Map<number, number>([[nth, y]]);
  for (const each of inOrder(panels)) {
    const panel = panels[each];
    if (panel === undefined || each === nth) continue;
    let top = panel.y;
    for (;;) {
      const place = { x: panel.x, y: top, w: panel.w, h: panel.h };
      const hit = placed.find((other) => overlap(place, other));
      if (hit === undefined) {
        placed.push(place);
        break;
      }
      top = below(hit);
    }
    tops.set(each, top);
  }
  if ([...tops.values()].some((top) => top >= rows)) return panels;
  return panels.map((panel, each) =>
    each === nth ? { ...panel, x, y, w, h } : { ...panel, y: tops.get(each) ?? panel.y },
  );
}

/** Indexes of the panels as they are read: row by row, from left to right. */
export function inOrder(panels: readonly PanelPlace[]): readonly number[] {
  return panels
    .map(({ x, y }, nth) => ({ x, y, nth }))
    .sort((one, other) => one.y - other.y || one.x - other.x)
    .map(({ nth }) => nth);
}

/** The first free place for a new panel; null where the board is full. */
export function freePlace(panels: readonly PanelPlace[], kind: BoardPanel["kind"]): PanelPlace | null {
  const size = newSizes[kind];
  for (let y = 0; y < rows; y += 1) {
    for (let x = 0; x + size.w <= columns; x += 1) {
      const place = { x, y, ...size };
      if (!panels.some((panel) => overlap(panel, place))) return place;
    }
  }
  return null;
}

/** Rows that the panels reach down to. */
export function rowsOf(panels: readonly PanelPlace[]): number {
  return Math.max(0, ...panels.map(below));
}
