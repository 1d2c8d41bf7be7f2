import { expect, test } from "@jest/globals";
import { withoutRepeats } from "../../src/mesh/service-log.ts";

test("a line that repeats is shown every ten seconds, with how often it came meanwhile", () => {
  const shown: string[] = [];
  let time = 0;
  const show = withoutRepeats(
    (line) => shown.push(line),
    () => time,
  );
  for (time = 0; time < 20_500; time += 1_000) show("data error: no space");
  show("keys warn: slow");
  expect(shown).toEqual([
    "data error: no space",
    "data error: no space (9 more in between)",
    "data error: no space (9 more in between)",
    "keys warn: slow",
  ]);
});
