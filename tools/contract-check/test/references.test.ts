import { existsSync, globSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { expect, test } from "@jest/globals";

const repository = join(import.meta.dirname, "../../..");
const folders = ["bench", "clients", "docs", "e2e", "k8s", "libs", "services", "supervisor", "tools", "web"];

/** Code and documents, by their path in the repository. */
function* textsBelow(folder: string): Generator<{ readonly path: string; readonly text: string }> {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory() && !/^(node_modules|dist.*|\..*)$/.test(entry.name)) yield* textsBelow(path);
    else if (entry.isFile() && /\.(tsx?|mjs|md|ya?ml)$/.test(entry.name))
      yield { path: relative(repository, path), text: readFileSync(path, "utf8") };
  }
}

const texts = [
  ...["README.md", "CONTRIBUTING.md"].map((path) => ({
    path,
    text: readFileSync(join(repository, path), "utf8"),
  })),
  ...folders.flatMap((folder) => [...textsBelow(join(repository, folder))]),
];

/** Every match of `pattern` with the file that has it. */
const namedIn = (pattern: RegExp, isIn: (path: string) => boolean = () => true) =>
  texts
    .filter(({ path }) => isIn(path))
    .flatMap(({ path, text }) => [...text.matchAll(pattern)].map(([, named = ""]) => ({ path, named })));

test("each decision that something names is in the list, which leads to each page of a decision in 300 words", () => {
  const pages = readdirSync(join(repository, "docs/adr")).filter((name) => /^\d{4}-/.test(name));
  const list = readFileSync(join(repository, "docs/adr/README.md"), "utf8");
  const numbers = [...list.matchAll(/^\| \[(\d+)\]\(/gm)].map(([, number]) => Number(number));
  // `ADR-32` is one of NATS.
  const named = namedIn(/\bADR (\d+)/g);
  expect(named.length).toBeGreaterThan(40);
  expect(named.filter((one) => !numbers.includes(Number(one.named)))).toEqual([]);
  expect(numbers).toEqual(numbers.map((_, at) => at + 1));
  expect(pages.filter((page) => !list.includes(`(${page})`))).toEqual([]);
  const wordsOf = (page: string) =>
    readFileSync(join(repository, "docs/adr", page), "utf8").split(/\s+/).length - 1;
  expect(pages.filter((page) => wordsOf(page) > 300)).toEqual([]);
});

test("each section of the public API that something names is there", () => {
  const api = readFileSync(join(repository, "docs/api.md"), "utf8");
  const sections = [...api.matchAll(/^## (.+)$/gm)].map(([, title = ""]) => title);
  const named = namedIn(/\(api\.md, ([^)]+)/g);
  expect(named.length).toBeGreaterThan(40);
  expect(named.filter((one) => !sections.some((title) => one.named.startsWith(title)))).toEqual([]);
});

/** The anchors that GitHub gives to the headings of a document. */
function anchorsOf(path: string): ReadonlySet<string> {
  const text = readFileSync(join(repository, path), "utf8").replaceAll(/^```[\s\S]*?^```/gm, "");
  const anchors = new Set<string>();
  for (const [, heading = ""] of text.matchAll(/^#+ (.+)$/gm)) {
    const anchor = heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, "")
      .replaceAll(" ", "-");
    let unique = anchor;
    for (let nth = 1; anchors.has(unique); nth += 1) unique = `${anchor}-${nth}`;
    anchors.add(unique);
  }
  return anchors;
}

const isDocument = (path: string) => path.endsWith(".md");

test("each link from a document leads to a file or folder of the repository", () => {
  const links = namedIn(/\]\((?!https?:|#|\/)([^)#\s]+)/g, isDocument);
  expect(links.length).toBeGreaterThan(60);
  expect(links.filter(({ path, named }) => !existsSync(join(repository, dirname(path), named)))).toEqual([]);
});

test("each link to a heading, `file.md#heading` or `#heading`, leads to a heading of that document", () => {
  const links = namedIn(/\]\((?!https?:|\/)([^)\s]*#[^)\s]+)\)/g, isDocument);
  expect(links.length).toBeGreaterThan(10);
  expect(
    links.filter(({ path, named }) => {
      const [file = "", anchor = ""] = named.split("#");
      const target = file === "" ? path : join(dirname(path), file);
      return !existsSync(join(repository, target)) || !anchorsOf(target).has(anchor);
    }),
  ).toEqual([]);
});

test("each path in a document, from the root of the repository or its own folder, is a file or folder", () => {
  const pattern =
    /`((?:bench|clients|docs|e2e|k8s|libs|monitoring|services|src|test|tools|web)\/(?!dist)[\w./*{},-]+)`/g;
  const paths = namedIn(pattern, isDocument);
  expect(paths.length).toBeGreaterThan(200);
  const isThere = (folder: string, named: string) =>
    globSync(named, { cwd: join(repository, folder) }).length > 0;
  expect(paths.filter(({ path, named }) => !isThere("", named) && !isThere(dirname(path), named))).toEqual(
    [],
  );
});
