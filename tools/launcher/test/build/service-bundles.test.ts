import { mkdir, readdir, readFile, utimes, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { childRegistry } from "@devmesh/supervisor/process/child-registry";
import { tempFolder } from "@devmesh/testkit/temp-folder";
import { afterAll, describe, expect, test } from "@jest/globals";
import { bundleServices } from "../../src/build/service-bundles.ts";

const children = childRegistry();
afterAll(() => children.killAll());

/** In place of the real program, with its argument: "bundles" the source of one service. */
const program = `
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
const source = readFileSync("services/keys/src/main.ts", "utf8");
if (source === "wrong") {
  console.error("main.ts does not parse");
  process.exit(1);
}
mkdirSync(process.argv[2] + "/keys", { recursive: true });
writeFileSync(process.argv[2] + "/keys/main.js", source);
`;

async function repository() {
  const folder = await tempFolder();
  const said: string[] = [];
  const write = async (path: string, text: string) => {
    await mkdir(dirname(join(folder.path, path)), { recursive: true });
    await writeFile(join(folder.path, path), text);
  };
  await write("tools/launcher/src/build/bundle.ts", program);
  await write("package.json", '{"type":"module"}');
  await write("package-lock.json", "{}");
  await write("libs/contracts/src/mesh.ts", "export {}");
  await write("services/keys/src/main.ts", "first");
  const log = (line: string) => void said.push(line);
  const options = { repository: folder.path, children, terminal: { log, warn: log } };
  return {
    said,
    write,
    bundles: join(folder.path, "dist"),
    build: (signal = new AbortController().signal) => bundleServices(options, signal),
    [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose](),
  };
}

const bundleIn = (folder: string | null) => readFile(join(folder ?? "", "keys", "main.js"), "utf8");

describe("the launcher", () => {
  test("bundles the services once for the same sources", async () => {
    await using code = await repository();
    const first = await code.build();
    expect(await bundleIn(first)).toBe("first");
    expect(await code.build()).toBe(first);
    expect(code.said).toEqual(["Bundling the services (dist), as there is no bundle of these sources."]);
  });

  test.each(["services/keys/src/main.ts", "libs/contracts/src/mesh.ts", "package-lock.json"])(
    "bundles them again when %s has changed, and leaves the former bundle to meshes that run",
    async (path) => {
      await using code = await repository();
      const first = await code.build();
      await code.write(path, "second");
      const second = await code.build();
      expect(second).not.toBe(first);
      expect(await bundleIn(first)).toBe("first");
      expect(await bundleIn(second)).toBe(path.startsWith("services") ? "second" : "first");
    },
  );

  test("removes bundles that are a week old when it makes another", async () => {
    await using code = await repository();
    const old = await code.build();
    const then = new Date(Date.now() - 8 * 24 * 3_600_000);
    await utimes(old ?? "", then, then);
    await code.write("services/keys/src/main.ts", "second");
    await code.build();
    expect(await readdir(code.bundles)).toHaveLength(1);
  });

  test("runs the services from their sources when a build fails, and prints why", async () => {
    await using code = await repository();
    await code.write("services/keys/src/main.ts", "wrong");
    expect(await code.build()).toBeNull();
    expect(code.said.slice(1)).toEqual([
      "main.ts does not parse",
      "The services are not bundled: the build ended (exit code 1). They run from their sources.",
    ]);
    expect(await readdir(code.bundles).catch(() => [])).toEqual([]);
  });

  test("bundles nothing once it is stopped", async () => {
    await using code = await repository();
    expect(await code.build(AbortSignal.abort())).toBeNull();
    expect(code.said).toEqual([]);
  });
});
