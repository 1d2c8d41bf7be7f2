import { cp, mkdir, readdir, readFile } from "node:fs/promises";
import { dirname, join, matchesGlob } from "node:path";

/** Copies the build context of a folder: everything but what its `.dockerignore` excludes. */
export async function copyBuildContext(from: string, to: string): Promise<void> {
  const ignored = ignoreRules(await readFile(join(from, ".dockerignore"), "utf8"));
  for (const path of await filesBelow(from, "", ignored)) {
    await mkdir(dirname(join(to, path)), { recursive: true });
    await cp(join(from, path), join(to, path), { verbatimSymlinks: true });
  }
}

type Ignored = (path: string) => boolean;

/** Later rules win, `!` includes again, and an ignored folder is ignored with its content. */
function ignoreRules(text: string): Ignored {
  const rules = text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "" && !line.startsWith("#"))
    .map((line) => ({ pattern: line.replace(/^!/, ""), ignores: !line.startsWith("!") }));
  return (path) => rules.findLast(({ pattern }) => matchesGlob(path, pattern))?.ignores ?? false;
}

async function filesBelow(root: string, folder: string, ignored: Ignored): Promise<string[]> {
  const entries = await readdir(join(root, folder), { withFileTypes: true });
  const files: string[] = [];
  for (const entry of entries) {
    const path = join(folder, entry.name);
    if (ignored(path)) continue;
    if (entry.isDirectory()) files.push(...(await filesBelow(root, path, ignored)));
    else files.push(path);
  }
  return files;
}
