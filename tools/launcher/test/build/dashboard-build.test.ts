import { mkdir, readFile, stat, symlink, utimes, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { childRegistry } from "@devmesh/supervisor/process/child-registry";
import { tempFolder } from "@devmesh/testkit/temp-folder";
import { afterAll, describe, expect, test } from "@jest/globals";
import { buildDashboard } from "../../src/build/dashboard-build.ts";

const children = childRegistry();
afterAll(() => children.killAll());

/** In place of vite, with its command line: "builds" the content of the source. */
const builder = `
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
const out = process.argv[process.argv.indexOf("--outDir") + 1];
const source = readFileSync("src/main.tsx", "utf8");
if (source === "wrong") {
  console.error("main.tsx does not parse");
  process.exit(1);
}
mkdirSync(out, { recursive: true });
writeFileSync(out + "/index.html", source === "for what" ? process.env.NODE_ENV : source);
`;

async function repository(source: string) {
  const folder = await tempFolder();
  const at = (path: string) => join(folder.path, path);
  const logged: string[] = [];
  const warned: string[] = [];
  const write = async (path: string, text: string) => {
    await mkdir(dirname(at(path)), { recursive: true });
    await writeFile(at(path), text);
  };
  await write("node_modules/vite/bin/vite.js", builder);
  await write("node_modules/vite/package.json", '{"type":"module"}');
  await write("web/src/main.tsx", source);
  return {
    write,
    logged,
    warned,
    linkToItself: (path: string) => symlink(at(path), at(path)),
    /** As if written some seconds ago. */
    age: async (path: string, seconds: number) => {
      const then = new Date(Date.now() - seconds * 1_000);
      await utimes(at(path), then, then);
    },
    built: () => readFile(at("web/dist/index.html"), "utf8").catch(() => null),
    leftovers: () => stat(at(`web/dist.${process.pid}`)).catch(() => null),
    build: () =>
      buildDashboard(
        {
          repository: folder.path,
          children,
          terminal: { log: (sentence) => logged.push(sentence), warn: (line) => warned.push(line) },
        },
        new AbortController().signal,
      ),
    [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose](),
  };
}

describe("the launcher", () => {
  test("for production, whatever the mesh itself is started for", async () => {
    await using web = await repository("for what");
    expect(process.env.NODE_ENV).toBe("test");
    await web.build();
    expect(await web.built()).toBe("production");
  });

  test("builds the dashboard when there is none, says so, and then leaves it until a source changes", async () => {
    await using mesh = await repository("first");
    for (const path of ["web/src/main.tsx", "web/src"]) await mesh.age(path, 60);
    await mesh.build();
    expect(await mesh.built()).toBe("first");
    expect(mesh.logged).toEqual([
      "Building the dashboard (web/dist), as it is missing or older than its sources.",
    ]);
    await mesh.build();
    expect(mesh.logged).toHaveLength(1);

    await mesh.age("web/dist/index.html", 30);
    await mesh.write("web/src/main.tsx", "second");
    await mesh.build();
    expect(await mesh.built()).toBe("second");
    expect(mesh.warned).toEqual([]);
    expect(await mesh.leftovers()).toBeNull();
  });

  test("goes on with what was built before when a build fails, and tells why it did", async () => {
    await using mesh = await repository("first");
    await mesh.build();
    await mesh.age("web/dist/index.html", 30);
    await mesh.write("web/src/main.tsx", "wrong");
    await mesh.build();
    expect(await mesh.built()).toBe("first");
    expect(mesh.warned).toEqual([
      "main.tsx does not parse",
      "The dashboard was not built: vite ended (exit code 1). The one that was built before is served.",
    ]);
    expect(await mesh.leftovers()).toBeNull();
  });

  test("starts although it cannot look at what was built before, and tells why", async () => {
    await using mesh = await repository("first");
    await mesh.linkToItself("web/dist");
    await mesh.build();
    expect(mesh.warned).toEqual([
      expect.stringMatching(
        /^The dashboard was not built: .*ELOOP.*Its addresses lead to the documents of the API\.$/,
      ),
    ]);
  });

  test("starts without a dashboard when the first build fails", async () => {
    await using mesh = await repository("wrong");
    await mesh.build();
    expect(await mesh.built()).toBeNull();
    expect(mesh.warned.at(-1)).toMatch(/Its addresses lead to the documents of the API\.$/);
  });
});
