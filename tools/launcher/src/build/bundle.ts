import { globSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { mesh } from "@devmesh/contracts/mesh";
import { rolldown } from "rolldown";

/*
 * Bundles each service into a folder `services/NAME` below the first argument: `main.js` and further programs, such as
 * `bootstrap/main.js`, one file for each worker thread, and one for each part that is loaded on demand, such as the
 * driver of MongoDB.
 */
const [out = ""] = process.argv.slice(2);
const repository = resolve(import.meta.dirname, "../../../..");
await Promise.all(Object.keys(mesh).map(bundle));

async function bundle(service: string): Promise<void> {
  const src = join(repository, "services", service, "src");
  const programs = globSync("**/main.ts", { cwd: src }).map((path) => [
    path.replace(/\.ts$/, ""),
    join(src, path),
  ]);
  const workers = globSync("**/*.worker.ts", { cwd: src }).map((path) => [
    basename(path, ".ts"),
    join(src, path),
  ]);
  const build = await rolldown({
    input: Object.fromEntries([...programs, ...workers]),
    platform: "node",
    logLevel: "warn",
  });
  await build.write({
    dir: join(out, "services", service),
    format: "esm",
    entryFileNames: "[name].js",
    chunkFileNames: "[name]-[hash].js",
    plugins: [{ name: "built-in modules", renderChunk: withoutFacades }],
    comments: false,
    // One character beyond Latin-1 makes V8 hold the whole file with two bytes a character, as long as it runs.
    minify: { compress: false, mangle: false, codegen: { removeWhitespace: false, asciiOnly: true } },
  });
  await build.close();
}

/**
 * Imports built-in modules without their ES facade, for which Node reads each member of them: `node:http` then loads
 * undici, which takes 14 MB of each process.
 */
function withoutFacades(code: string): string {
  return code.replaceAll(
    /^import (?:([\w$]+),? )?(?:\{ (.+) \} )?from "(node:[\w/]+)";$/gm,
    (_, whole?: string, members?: string, module?: string) => {
      const builtin = `process.getBuiltinModule("${module}")`;
      const names = members?.replaceAll(" as ", ": ");
      return [
        ...(whole === undefined ? [] : [`const ${whole} = ${builtin};`]),
        ...(names === undefined ? [] : [`const { ${names} } = ${builtin};`]),
      ].join(" ");
    },
  );
}
