import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { datedChangelog, setRelease } from "./release-version.ts";

// `npm run release -- VERSION` (docs/release.md): writes the version everywhere, dates its part of the changelog, and
// releases the surfaces of the contracts. It neither commits nor publishes.
const [release = ""] = process.argv.slice(2);
const root = resolve(import.meta.dirname, "../../..");
const changelog = join(root, "CHANGELOG.md");

function fail(message: string): never {
  process.stderr.write(`${message}\n`);
  process.exit(1);
}

if (!/^\d+\.\d+\.\d+$/.test(release)) fail("Usage: npm run release -- MAJOR.MINOR.PATCH");
const today = new Date().toISOString().slice(0, 10);
const dated = datedChangelog(readFileSync(changelog, "utf8"), release, today);
if (dated === null) fail(`CHANGELOG.md has no heading "## ${release}, unreleased".`);
setRelease(root, release);
writeFileSync(changelog, dated);
const generate = join(import.meta.dirname, "generate.ts");
execFileSync(process.execPath, [generate, "--release"], { stdio: "inherit" });
