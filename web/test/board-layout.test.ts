import { describe, expect, test } from "@jest/globals";
import {
  freePlace,
  inOrder,
  movedBy,
  type PanelPlace,
  resizedBy,
  withPlace,
} from "../src/features/boards/board-layout.ts";

const at = (x: number, y: number, w: number, h: number): PanelPlace => ({ x, y, w, h });

const overlap = (one: PanelPlace, other: PanelPlace) =>
  one.x < other.x + other.w &&
  other.x < one.x + one.w &&
  one.y < other.y + other.h &&
  other.y < one.y + one.h;

describe("the grid of a board", () => {
  test("keeps a moved panel within its columns and below its upper edge", () => {
    expect(movedBy(at(3, 2, 6, 4), 1, -1)).toEqual(at(4, 1, 6, 4));
    expect(movedBy(at(3, 2, 6, 4), 9, -9)).toEqual(at(6, 0, 6, 4));
    expect(movedBy(at(3, 399, 6, 4), -9, 9)).toEqual(at(0, 399, 6, 4));
  });

  test("keeps a resized panel within its columns, and large enough for what it shows", () => {
    expect(resizedBy({ kind: "chart", ...at(8, 0, 4, 4) }, 1, 1)).toEqual(at(8, 0, 4, 5));
    expect(resizedBy({ kind: "chart", ...at(0, 0, 4, 4) }, -9, -9)).toEqual(at(0, 0, 3, 3));
    expect(resizedBy({ kind: "value", ...at(0, 0, 4, 4) }, -9, 99)).toEqual(at(0, 0, 2, 12));
    expect(resizedBy({ kind: "chart", ...at(11, 0, 1, 4) }, -1, 0)).toEqual(at(11, 0, 1, 4));
  });

  test("moves down what is in the way of a moved panel, and nothing else", () => {
    const panels = [at(0, 0, 6, 2), at(6, 0, 6, 2), at(6, 2, 6, 2), at(0, 9, 6, 2)];
    expect(withPlace(panels, 0, at(3, 0, 6, 2))).toEqual([
      at(3, 0, 6, 2),
      at(6, 2, 6, 2),
      at(6, 4, 6, 2),
      at(0, 9, 6, 2),
    ]);
  });

  test("leaves all panels where they are if some would be below its last row", () => {
    const panels = [at(0, 0, 6, 12), at(0, 390, 6, 12)];
    expect(withPlace(panels, 0, at(0, 389, 6, 12))).toBe(panels);
  });

  test("has no two panels in one cell, wherever one is moved", () => {
    const panels = [at(0, 0, 4, 3), at(4, 0, 8, 2), at(4, 2, 5, 4), at(9, 2, 3, 3), at(0, 3, 4, 4)];
    for (const nth of panels.keys()) {
      for (let x = 0; x < 12; x += 1) {
        for (let y = 0; y < 9; y += 1) {
          const panel = panels[nth] ?? at(0, 0, 1, 1);
          const place = movedBy({ ...panel, x: 0, y: 0 }, x, y);
          const moved = withPlace(panels, nth, place);
          expect(moved[nth]).toEqual(place);
          const pairs = moved.flatMap((one, first) =>
            moved.slice(first + 1).map((other) => [one, other] as const),
          );
          expect(pairs.filter(([one, other]) => overlap(one, other))).toEqual([]);
        }
      }
    }
  });

  test("has a new panel at the first place that is free", () => {
    expect(freePlace([], "chart")).toEqual(at(0, 0, 6, 4));
    expect(freePlace([at(0, 0, 6, 4)], "value")).toEqual(at(6, 0, 3, 2));
    expect(freePlace([at(0, 0, 7, 4)], "chart")).toEqual(at(0, 4, 6, 4));
  });

  test("is read row by row", () => {
    expect(inOrder([at(6, 0, 6, 2), at(0, 2, 6, 2), at(0, 0, 6, 2)])).toEqual([2, 0, 1]);
  });
});
