import { describe, expect, test } from "@jest/globals";
import type { Json } from "../src/model/json.ts";
import { cutToPointers, pointerTree } from "../src/model/pointer-tree.ts";

const shadow: Json = {
  state: { desired: { app: { on: true }, "x/y": [1, 2] }, reported: { app: { on: false }, sys: 1 } },
  tags: {},
};
const cut = (...pointers: string[]) => cutToPointers(shadow, pointerTree(pointers));

describe("a value cut to pointers", () => {
  test("holds what they cover, with the objects on the way there", () => {
    expect(cut("/state/desired/app", "/state/reported/sys")).toEqual({
      state: { desired: { app: { on: true } }, reported: { sys: 1 } },
    });
    expect(cut("/state/desired", "/state/desired/app/on")).toEqual({
      state: { desired: { app: { on: true }, "x/y": [1, 2] } },
    });
    expect(cut("")).toEqual(shadow);
  });

  test("holds an empty object that is covered, and none that only leads on", () => {
    expect(cut("/tags")).toEqual({ tags: {} });
    expect(cut("/tags/labels", "/state/desired/none")).toBeUndefined();
  });

  test("has arrays as whole values, and names as pointers write them", () => {
    expect(cut("/state/desired/x~1y")).toEqual({ state: { desired: { "x/y": [1, 2] } } });
    expect(cut("/state/desired/x~1y/0")).toBeUndefined();
  });

  test("never holds what every object inherits", () => {
    expect(cut("/toString", "/state/constructor", "/__proto__")).toBeUndefined();
  });
});
