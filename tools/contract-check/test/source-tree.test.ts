import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join, posix } from "node:path";
import { expect, test } from "@jest/globals";

/**
 * Every package is a tree. In each of its folders, the units are the files and the subfolders, a subfolder with all
 * that is below it. An import, also of a type alone, is an arrow between two units of the deepest folder that has both
 * files. It is an arrow back up when arrows lead from the imported unit to the importing one: both are on a circle.
 */
const repository = join(import.meta.dirname, "../../..");

type Import = readonly [importer: string, imported: string];

/** The sources of each package, by the package's folder. */
function sourcesOfPackages(): ReadonlyMap<string, readonly string[]> {
  const options = ["--cached", "--others", "--exclude-standard"];
  const listed = execFileSync("git", ["ls-files", ...options], { cwd: repository, encoding: "utf8" });
  const files = listed.split("\n").filter((path) => path !== "" && existsSync(join(repository, path)));
  const folders = files.filter((path) => path.endsWith("/package.json")).map((path) => posix.dirname(path));
  const sources = files.filter((path) => /\.(tsx?|[cm]?js)$/.test(path));
  return new Map(folders.map((folder) => [folder, sources.filter((path) => path.startsWith(`${folder}/`))]));
}

/** What a source imports by a relative path. */
function importsOf(path: string, folder: string): Import[] {
  const text = readFileSync(join(repository, path), "utf8");
  return [...text.matchAll(/(?:\bfrom|\bimport|\bimport\(|\bnew URL\()\s*"(\.[^"]+\.(?:tsx?|[cm]?js))"/g)]
    .map(([, specifier = ""]) => posix.join(posix.dirname(path), specifier))
    .filter((imported) => imported.startsWith(`${folder}/`))
    .map((imported) => [path, imported] as const);
}

/** The arrows that run back up, as `FOLDER: UNIT -> UNIT`. */
function arrowsBackUp(imports: readonly Import[]): string[] {
  const folders = new Map<string, Map<string, Set<string>>>();
  for (const [importer, imported] of imports) {
    const [one, other] = [importer.split("/"), imported.split("/")];
    const depth = one.findIndex((part, at) => part !== other[at]);
    if (depth < 0) continue;
    const folder = one.slice(0, depth).join("/");
    const arrows = folders.get(folder) ?? new Map<string, Set<string>>();
    const [from = "", to = ""] = [one[depth], other[depth]];
    folders.set(folder, arrows.set(from, (arrows.get(from) ?? new Set()).add(to)));
  }
  return [...folders].flatMap(([folder, arrows]) => {
    const reachedFrom = (unit: string, reached = new Set<string>()): ReadonlySet<string> => {
      for (const next of arrows.get(unit) ?? []) if (!reached.has(next)) reachedFrom(next, reached.add(next));
      return reached;
    };
    return [...arrows].flatMap(([from, targets]) =>
      [...targets].filter((to) => reachedFrom(to).has(from)).map((to) => `${folder}: ${from} -> ${to}`),
    );
  });
}

test("no import of any package runs back up", () => {
  const packages = sourcesOfPackages();
  expect(packages.size).toBeGreaterThan(20);
  const imports = [...packages].flatMap(([folder, sources]) =>
    sources.flatMap((path) => importsOf(path, folder)),
  );
  expect(imports.length).toBeGreaterThan(1_500);
  expect(arrowsBackUp(imports)).toEqual([]);
});

test("a circle between folders is found, also through a third one or a file beside them", () => {
  const imports = [
    ["p/a/x.ts", "p/b/x.ts"],
    ["p/b/inner/y.ts", "p/c.ts"],
    ["p/c.ts", "p/a/inner/y.ts"],
    ["p/d/x.ts", "p/a/x.ts"],
  ] as const;
  expect(arrowsBackUp(imports)).toEqual(["p: a -> b", "p: b -> c.ts", "p: c.ts -> a"]);
  expect(arrowsBackUp(imports.slice(1))).toEqual([]);
});

test("a circle between the files of a folder is found, and a file may import one above its folder", () => {
  const files = [
    ["p/a/x.ts", "p/a/y.ts"],
    ["p/a/y.ts", "p/a/x.ts"],
  ] as const;
  expect(arrowsBackUp(files)).toEqual(["p/a: x.ts -> y.ts", "p/a: y.ts -> x.ts"]);
  expect(arrowsBackUp([["p/start.ts", "p/a/x.ts"] as const, ["p/a/x.ts", "p/ground.ts"] as const])).toEqual(
    [],
  );
});
