import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, sep } from "node:path";
import { expect, test } from "@jest/globals";

const source = join(import.meta.dirname, "../src");

/** Every import between source files, as paths below `src`. */
function importsOf(root: string): (readonly [from: string, to: string])[] {
  return readdirSync(root, { recursive: true, encoding: "utf8" })
    .filter((name) => /\.tsx?$/.test(name))
    .flatMap((name) =>
      [...readFileSync(join(root, name), "utf8").matchAll(/(?:from|import\(?)\s*"(\.[^"]+)"/g)].map(
        ([, path = ""]) => [name, relative(root, join(root, dirname(name), path))] as const,
      ),
    );
}

/** Pairs of sibling folders of which each imports, directly or through others, from the other one. */
function circlesOf(imports: readonly (readonly [from: string, to: string])[]): string[] {
  const reached = new Map<string, Set<string>>();
  for (const [from, to] of imports) {
    const [one, other] = [dirname(from).split(sep), dirname(to).split(sep)];
    let depth = 0;
    while (one[depth] === other[depth] && depth < one.length) depth += 1;
    // A folder and those below it are one unit for its siblings.
    if (depth >= one.length || depth >= other.length) continue;
    const folder = (parts: string[]) => parts.slice(0, depth + 1).join("/");
    reached.set(folder(one), (reached.get(folder(one)) ?? new Set()).add(folder(other)));
  }
  const reach = (from: string, seen = new Set<string>()): Set<string> => {
    for (const to of reached.get(from) ?? []) if (!seen.has(to)) reach(to, seen.add(to));
    return seen;
  };
  return [...reached.keys()].filter((folder) => reach(folder).has(folder));
}

test("the folders of the source form a tree without circles", () => {
  const imports = importsOf(source);
  expect(imports.length).toBeGreaterThan(200);
  expect(circlesOf(imports)).toEqual([]);
});

test("a circle between folders is found, also through a third one", () => {
  const imports = [
    ["a/x.ts", "b/x.ts"],
    ["b/inner/y.ts", "c/x.ts"],
    ["c/x.ts", "a/inner/y.ts"],
    ["d/x.ts", "a/x.ts"],
  ] as const;
  expect(circlesOf(imports)).toEqual(["a", "b", "c"]);
  expect(circlesOf(imports.slice(1))).toEqual([]);
});
