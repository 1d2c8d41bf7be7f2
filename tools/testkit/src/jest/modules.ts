import { readFileSync } from "node:fs";
import { registerHooks, setSourceMapsSupport } from "node:module";
import { fileURLToPath, pathToFileURL } from "node:url";
import { transformSync } from "rolldown/utils";

/** Modules in place of others, by the name that they are imported by. */
const replaced: Readonly<Record<string, string>> = {
  "@jest/globals": import.meta.resolve("./globals.ts"),
  // One file in place of one module for each icon.
  "lucide-react": import.meta.resolve("lucide-react/dist/cjs/lucide-react.js"),
};

/** Ends the address of a module that one test file has for itself. */
const ownModule = /\?(?:test|all)=\d+$/;
const fileUrl = /^file:.*\/node_modules\/|^(?!file:)/;
let files = 0;

/**
 * Imports a test file. It evaluates modules below `test` for itself, and those of packages once for each process;
 * with `all` it evaluates each module of the repository for itself.
 */
export async function importTestFile(path: string, all: boolean): Promise<void> {
  files++;
  await import(`${pathToFileURL(path)}?${all ? "all" : "test"}=${files}`);
}

/** The path of a module without `file:` and without the mark of its test file. */
export function pathOfModule(url: string): string {
  return url.replace(ownModule, "").replace(/^file:\/\//, "");
}

setSourceMapsSupport(true);
registerHooks({
  resolve(specifier, context, next) {
    const other = replaced[specifier];
    if (other !== undefined) return { url: other, shortCircuit: true };
    const found = next(specifier, context);
    const [own] = context.parentURL?.match(ownModule) ?? [];
    if (own === undefined || fileUrl.test(found.url) || ownModule.test(found.url)) return found;
    return own.startsWith("?all") || found.url.includes("/test/")
      ? { ...found, url: found.url + own }
      : found;
  },
  load(url, context, next) {
    const file = url.replace(ownModule, "");
    // Components are tested without styles.
    if (file.endsWith(".css")) return { format: "module", source: "export default {};", shortCircuit: true };
    if (!file.endsWith(".tsx")) return next(url, context);
    const path = fileURLToPath(file);
    const { code, map } = transformSync(path, readFileSync(path, "utf8"), { sourcemap: true });
    const inline = Buffer.from(JSON.stringify(map)).toString("base64");
    const source = `${code}\n//# sourceMappingURL=data:application/json;base64,${inline}`;
    return { format: "module", source, shortCircuit: true };
  },
});
