import { execFileSync, spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "@jest/globals";

/** The rules of CONTRIBUTING.md for comments that a program can check. */
const repository = join(import.meta.dirname, "../../..");

/** Longest line of a comment, indentation included. */
const maxLength = 120;

/** Most lines with a word of the list: each of these words is right now and then. */
const maxMatches = 20;

/** Words for which CONTRIBUTING.md gives the field's term. */
const words = new RegExp(
  String.raw`\b(${[
    "told",
    "tells? (of|whom|that|what|which|who)",
    "stands? (for|in|here|there|beside|behind)",
    "whom",
    "hears?",
    "heard",
    "behind",
    "believed?",
    "is that of",
    "are those of",
    "farewell",
    "misdeeds?",
    "surroundings",
    "whoever",
  ].join("|")})\b`,
  "i",
);

/** Ways to begin or end a comment that say nothing of their subject. */
const phrases = /\bThe same\b|\bWhat [\w' ]+ needs\b|\bof (its|their) own\b/;

interface CommentLine {
  readonly place: string;
  readonly text: string;
}

/** Each line of each comment in TypeScript and JavaScript sources. */
function* commentLines(): Generator<CommentLine> {
  const patterns = ["*.ts", "*.tsx", "*.mjs", "*.js"];
  const listed = execFileSync(
    "git",
    ["ls-files", "--cached", "--others", "--exclude-standard", ...patterns],
    {
      cwd: repository,
      encoding: "utf8",
    },
  );
  for (const path of listed.split("\n")) {
    if (path === "" || path.endsWith("language.test.ts")) continue;
    let text: string;
    try {
      text = readFileSync(join(repository, path), "utf8");
    } catch {
      // Deleted, and not committed yet.
      continue;
    }
    let inBlock = false;
    for (const [index, line] of text.split("\n").entries()) {
      const place = `${path}:${index + 1}`;
      const opens = /^\s*\{?\/\*/.test(line);
      if (inBlock || opens) yield { place, text: line };
      else {
        const comment = /(?:^|\s)\/\/ (.*)$/.exec(line);
        if (comment) yield { place, text: /^\s*\/\//.test(line) ? line : (comment[1] ?? "") };
      }
      inBlock = (inBlock || opens) && !line.includes("*/");
    }
  }
}

const lines = [...commentLines()];

test("comments have at most 120 characters a line", () => {
  expect(lines.length).toBeGreaterThan(2_000);
  expect(
    lines
      .filter(({ text }) => text.length > maxLength && !text.includes("biome-ignore"))
      .map(({ place }) => place),
  ).toEqual([]);
});

test("comments use the field's terms: fewer than 20 lines have a word of the list", () => {
  const found = lines
    .filter(({ text }) => words.test(text) || phrases.test(text))
    .map(({ place, text }) => `${place} ${text.trim()}`);
  expect(found.length < maxMatches ? [] : found).toEqual([]);
});

test("a bound says what it bounds, such as reportBatchSize or maxDeletions: no name ends in AtOnce", () => {
  const pattern = ["-E", "[a-z]AtOnce\\b", "--", "*.ts", "*.tsx", ":!*/language.test.ts"];
  const { stdout, status } = spawnSync("git", ["grep", "-n", ...pattern], {
    cwd: repository,
    encoding: "utf8",
  });
  expect([stdout, status]).toEqual(["", 1]);
});

test("a declared name has one meaning: no type, interface or class is declared in two files", () => {
  const pattern = ["-hoE", "^(export )?(abstract )?(type|interface|class) [A-Z]\\w*", "--", "*.ts", "*.tsx"];
  const tests = [":!*/test/*", ":!*.suite.ts", ":!bench/peers"];
  const { stdout } = spawnSync("git", ["grep", ...pattern, ...tests], { cwd: repository, encoding: "utf8" });
  const names = stdout.split("\n").map((line) => line.split(" ").at(-1) ?? "");
  expect(names.length).toBeGreaterThan(500);
  const counts = Map.groupBy(names.filter(Boolean), (name) => name);
  expect([...counts].filter(([, found]) => found.length > 1).map(([name]) => name)).toEqual([
    // The package for users has the name of the REST API.
    "Problem",
  ]);
});
