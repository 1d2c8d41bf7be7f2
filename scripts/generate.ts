import { execFile } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { z } from "zod";
import { brokerDocuments } from "./src/deployment/broker-documents.ts";
import { subjectDocument } from "./src/subject-document.ts";

// Writes the documents and configurations that are derived from the contracts; with `--check` names those that are stale and fails instead.

const root = new URL("../", import.meta.url);
const gatewayDescription = fileURLToPath(new URL("services/gateway/src/describe.ts", root));
// The gateway is asked as a program: this package depends on no service.
const { stdout } = await promisify(execFile)(process.execPath, [gatewayDescription], {
  maxBuffer: 64 * 1024 * 1024,
});

const documents: Readonly<Record<string, string>> = {
  ...z.record(z.string(), z.string()).parse(JSON.parse(stdout)),
  "docs/subjects.md": subjectDocument(),
  ...brokerDocuments(),
};

const check = process.argv.includes("--check");
for (const [path, text] of Object.entries(documents)) {
  const file = new URL(path, root);
  const present = await readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    throw error;
  });
  if (present === text) continue;
  if (check) {
    process.stderr.write(`${path} is stale: run npm run generate\n`);
    process.exitCode = 1;
  } else {
    await writeFile(file, text);
    process.stdout.write(`wrote ${path}\n`);
  }
}
