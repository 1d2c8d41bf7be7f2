import { expect, test } from "@jest/globals";
import { createIdSource, isSortableId } from "../src/sortable-id.ts";
import { ManualClock } from "../src/testing/manual-clock.ts";

test("ids of one source ascend within a millisecond, and those of two sources are different ones", () => {
  const clock = new ManualClock();
  const made = [createIdSource(clock), createIdSource(clock)].map((newId) =>
    Array.from({ length: 10_000 }, () => newId()),
  );
  for (const ids of made) expect(ids).toEqual(ids.toSorted());
  const all = made.flat();
  expect(new Set(all).size).toBe(20_000);
  expect(all.every(isSortableId)).toBe(true);
});
