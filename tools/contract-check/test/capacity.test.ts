import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "@jest/globals";

const repository = join(import.meta.dirname, "../../..");
const run = (...args: string[]) =>
  spawnSync(process.execPath, [join(repository, "bench/capacity.ts"), ...args], { encoding: "utf8" });

test("the tables of scale.md are what the calculation prints", () => {
  const { status, stdout } = run();
  expect(status).toBe(0);
  expect(readFileSync(join(repository, "docs/operations/scale.md"), "utf8")).toContain(stdout);
});

test.each([
  [["--devices", "many"], '--devices is "many"; it must be a number above 0.'],
  [["--devices", "1000,0"], '--devices is "0"; it must be a number above 0.'],
  [["--records-per-minute=-1"], '--records-per-minute is "-1"; it must be a number.'],
  [["--retention-days", "0"], '--retention-days is "0"; it must be a number above 0.'],
  [["--minutes", "2"], "Unknown option '--minutes'"],
  [["1000"], "Unexpected argument '1000'"],
])("%j is refused with its reason and the inputs that exist", (args, reason) => {
  const { status, stdout, stderr } = run(...args);
  expect({ status, stdout }).toEqual({ status: 2, stdout: "" });
  expect(stderr).toContain(reason);
  expect(stderr).toContain("Inputs: --devices 10000,100000,1000000 --records-per-minute 2");
});

test("a fleet that publishes less needs less of what is counted in records, and no less of the rest", () => {
  const usedBy = (args: string[]) =>
    new Map(
      [
        ...run("--devices", "1000000", ...args).stdout.matchAll(
          /^\| (.+) \| [\d,.∞]+ \| \**([\d,.]+)\** \|$/gm,
        ),
      ].map(([, limit = "", used = ""]) => [limit, Number(used.replaceAll(",", ""))]),
    );
  const [often, seldom] = [usedBy(["--records-per-minute", "10"]), usedBy(["--records-per-minute", "0"])];
  expect(often.size).toBeGreaterThan(8);
  const less = [...often].filter(([limit, used]) => (seldom.get(limit) ?? 0) < used).map(([limit]) => limit);
  expect(less.sort()).toEqual([
    "one stream of the broker, as shown",
    "one stream of the broker, at most",
    "records in one replica set of MongoDB",
    "the one replica of `data` that stores, MongoDB",
    "the one replica of `data` that stores, SQLite",
  ]);
});
