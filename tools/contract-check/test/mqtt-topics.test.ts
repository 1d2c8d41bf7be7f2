import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { allTopics, native } from "@devmesh/contracts/mqtt";
import { describe, expect, test } from "@jest/globals";

/** The topics of devices are declared once, in the table of libs/contracts/src/mqtt.ts. */
const repository = join(import.meta.dirname, "../../..");
const read = (path: string) => readFileSync(join(repository, path), "utf8");

/** As the documents write a topic. */
const written = (topic: string) =>
  topic.replace("{id}", "ID").replace("{replica}", "REPLICA").replace("{name...}", "<name…>");

/** The rows of a document that begin with a topic: what is in the first column, the direction, all topics. */
function topicRows(path: string) {
  const topicsIn = (text: string) =>
    [...text.matchAll(/`((?:ID|db)\/[^` ]+)`/g)].map(([, topic = ""]) => topic);
  return [
    ...read(path).matchAll(/^\| (`(?:ID|db|<src>)\/.*?) \| ((?:to|from) the device) \| (.*) \|$/gm),
  ].map(([, first = "", direction = "", rest = ""]) => ({
    first: topicsIn(first),
    direction,
    retained: rest.includes("retained"),
    all: topicsIn(first + rest),
  }));
}

describe.each(["README.md", "docs/api.md"])("the table of %s", (path) => {
  const rows = topicRows(path);

  test("names each topic", () => {
    const named = new Set(rows.flatMap(({ all }) => all).filter((topic) => !topic.endsWith("#")));
    expect([...named].sort()).toEqual(allTopics.map(({ topic }) => written(topic)).sort());
  });

  test("says who publishes, and what is retained", () => {
    for (const { first, direction, retained } of rows)
      for (const name of first) {
        const declared = allTopics.find(({ topic }) => written(topic) === name);
        const expected = declared?.from === "mesh" ? "to the device" : "from the device";
        expect([name, direction, retained]).toEqual([name, expected, declared?.retained ?? false]);
      }
  });
});

test("the refused filters of api.md are those of the table", () => {
  for (const filter of native.subscribe.deny) expect(read("docs/api.md")).toContain(`\`${written(filter)}\``);
});

/** A topic, or the subject of one, spelt out in a source. REST has `devices/ID/rpc`, too. */
const literal =
  /(?<!devices\/)\$\{[^}]+\}[/.](?:rpc|r|shadow|event)(?![\w-])|["'`}]db(?:\/|\.[>$*_])|["'`}]\*\.(?:rpc|r|shadow|event)(?![\w-])/;
const comment = /^\s*(?:\/\/|\/?\*)/;

test("no other source spells a topic out", () => {
  const folders = ["libs/*", "services/*", "supervisor", "tools/*"].map(
    (folder) => `:(glob)${folder}/src/**`,
  );
  // The contracts themselves also describe topics, and have examples of them.
  const scope = [...folders, "web/src", ":(exclude)libs/contracts"];
  const listed = execFileSync("git", ["ls-files", "--", ...scope], { cwd: repository, encoding: "utf8" });
  const sources = listed.split("\n").filter((path) => /\.tsx?$/.test(path));
  expect(sources.length).toBeGreaterThan(300);
  const found = sources.flatMap((path) =>
    read(path)
      .split("\n")
      .filter((line) => literal.test(line) && !comment.test(line))
      .map((line) => `${path}: ${line.trim()}`),
  );
  expect(found).toEqual([]);
});

test.each([
  "topic === `#{login.id}/rpc`",
  "`#{deviceId}.shadow.update`,",
  '"*.shadow.get"',
  '"db.>"',
  "`db/#{id}/temp`",
])("%s would be found", (line) => {
  expect(literal.test(line.replace("#", "$"))).toBe(true);
});
