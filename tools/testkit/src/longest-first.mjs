import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import TestSequencer from "@jest/test-sequencer";

/**
 * The order in which jest starts the files of a package: as it took them before, the longest first. Where it has
 * measured none, the length of a file and of the suites that it imports is the measure; jest takes the file's alone.
 */
export default class LongestFirst extends TestSequencer {
  sort(tests) {
    const sorted = super.sort(tests);
    if (sorted.some(({ duration }) => duration !== undefined)) return sorted;
    const lengths = new Map(sorted.map(({ path }) => [path, lengthWithSuites(path)]));
    return sorted.sort((one, other) => lengths.get(other.path) - lengths.get(one.path));
  }
}

function lengthWithSuites(path) {
  const text = readFileSync(path, "utf8");
  const suites = text.matchAll(/ from "(\.{1,2}\/[^"]+\.suite\.tsx?)"/g);
  return [...suites].reduce(
    (sum, [, name]) => sum + lengthWithSuites(join(dirname(path), name)),
    text.length,
  );
}
