import { cpSync, mkdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { serviceNames } from "@devmesh/contracts/mesh";
import { release } from "@devmesh/contracts/release";
import { type TempFolder, tempFolder } from "@devmesh/testkit/temp-folder";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { datedChangelog, mentionsOfRelease, setRelease } from "../src/release-version.ts";

const repository = join(import.meta.dirname, "../../..");
const mentions = mentionsOfRelease(repository);
let copy: TempFolder;

beforeAll(async () => {
  copy = await tempFolder();
  for (const path of new Set(mentions.map((mention) => mention.path))) {
    mkdirSync(join(copy.path, dirname(path)), { recursive: true });
    cpSync(join(repository, path), join(copy.path, path));
  }
});
afterAll(() => copy.remove());

test("all that names the release names the same, every workspace and its entry in the lock file among it", () => {
  expect(mentions.filter(({ version }) => version !== release)).toEqual([]);
  const count = (pattern: RegExp) => mentions.filter(({ path }) => pattern.test(path)).length;
  const { packages } = JSON.parse(readFileSync(join(repository, "package-lock.json"), "utf8"));
  const workspaces = Object.keys(packages).filter((path) => path !== "" && !path.includes("node_modules/"));
  expect(count(/package\.json$/)).toBe(workspaces.length + 1);
  expect(count(/package-lock/)).toBe(workspaces.length + 2);
  expect(count(/kustomization/)).toBe(4 * serviceNames.length);
  for (const path of ["release.ts", "pyproject.toml", "install.md", "README.md"])
    expect({ path, count: count(new RegExp(`${path}$`)) }).toEqual({ path, count: 1 });
});

test("another release is written into each of these places", () => {
  setRelease(copy.path, "12.34.56");
  expect(mentionsOfRelease(copy.path)).toEqual(mentions.map(({ path }) => ({ path, version: "12.34.56" })));
});

test("the changelog has a part for the release, which gets its date", () => {
  expect(readFileSync(join(repository, "CHANGELOG.md"), "utf8")).toMatch(
    new RegExp(`^## ${release}, (unreleased|\\d{4}-\\d{2}-\\d{2})$`, "m"),
  );
  expect(datedChangelog("# C\n\n## 2.0.0, unreleased\n\n- x\n", "2.0.0", "2027-01-02")).toBe(
    "# C\n\n## 2.0.0, 2027-01-02\n\n- x\n",
  );
  expect(datedChangelog("# C\n\n## 1.0.0, 2026-01-01\n", "2.0.0", "2027-01-02")).toBeNull();
});
