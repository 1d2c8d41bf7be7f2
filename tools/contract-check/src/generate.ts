import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { parseArgs, promisify } from "node:util";
import { mesh } from "@devmesh/contracts/mesh";
import { brokerDocuments } from "@devmesh/launcher/deployment/broker-documents";
import { z } from "zod";
import { filesWithParts, serviceDocuments, withParts } from "./service-documents.ts";
import { subjectDocument } from "./subject-document.ts";
import { planSurfaces } from "./surface-files.ts";

// Writes the documents and configurations that derive from the contracts; `--check` fails for stale ones instead. A
// contract that breaks its released surface is refused; `--release` releases the present surfaces.

const { values: options } = parseArgs({
  options: { check: { type: "boolean", default: false }, release: { type: "boolean", default: false } },
});
const root = new URL("../../../", import.meta.url);
// A program: this package depends on no service.
const describe = fileURLToPath(new URL("services/gateway/src/reference/describe.ts", root));
const run = async (program: string) =>
  await promisify(execFile)(process.execPath, [program], { maxBuffer: 64 * 1024 * 1024 });
const { stdout } = await run(describe);
const capacity = await run(fileURLToPath(new URL("bench/capacity.ts", root)));
const described = z.record(z.string(), z.string()).parse(JSON.parse(stdout));
const surfaces = await planSurfaces(fileURLToPath(root), mesh, options.release);
const withGeneratedParts: Readonly<Record<string, string>> = Object.fromEntries(
  await Promise.all(
    filesWithParts.map(async (path) => [path, withParts(await readFile(new URL(path, root), "utf8"))]),
  ),
);

const documents: Readonly<Record<string, string>> = {
  ...described,
  "docs/subjects.md": subjectDocument(),
  "docs/operations/scale.md": withPrinted(
    await readFile(new URL("docs/operations/scale.md", root), "utf8"),
    capacity.stdout,
  ),
  ...withGeneratedParts,
  "monitoring/prometheus-rule.yaml": prometheusRule(withGeneratedParts["monitoring/rules.yaml"] ?? ""),
  ...serviceDocuments((path) => existsSync(new URL(path, root))),
  ...brokerDocuments(),
  ...surfaces.documents,
};

/** A page with what a program prints between two comments. */
function withPrinted(page: string, printed: string): string {
  const between = /(?<=<!-- printed by .*-->\n\n)[\s\S]*(?=<!-- end of printed -->)/;
  if (!between.test(page)) throw new Error("the page has no place for what is printed");
  return page.replace(between, () => printed);
}

/** Rules of Prometheus as an object of its operator. */
function prometheusRule(rules: string): string {
  return `# Made of rules.yaml by npm run generate.
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: devmesh
spec:
${rules.replaceAll(/^(?=.)/gm, "  ")}`;
}

for (const [path, text] of Object.entries(documents)) {
  const file = new URL(path, root);
  const present = await readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    throw error;
  });
  if (present === text) continue;
  if (options.check) {
    process.stderr.write(`${path} is stale: run npm run generate\n`);
    process.exitCode = 1;
  } else {
    await mkdir(new URL(".", file), { recursive: true });
    await writeFile(file, text);
    process.stdout.write(`wrote ${path}\n`);
  }
}

for (const problem of surfaces.problems) process.stderr.write(`${problem}\n`);
if (surfaces.problems.length > 0) {
  process.stderr.write(
    "Who knows the released contract would notice: keep what it says, or give the contract a new version (docs/architecture.md).\n",
  );
  process.exitCode = 1;
}
