import { execFile } from "node:child_process";
import { cp, mkdir, readdir, writeFile } from "node:fs/promises";
import { delimiter, dirname, join } from "node:path";
import { promisify } from "node:util";
import { CreatedDevice } from "@devmesh/contracts/model/device";
import { api } from "@devmesh/contracts/rest/api";
import type { RouteDeclaration } from "@devmesh/contracts/rest/route";
import { repository } from "@devmesh/supervisor/mesh/service-process";
import { startMesh, type TestMesh } from "@devmesh/testkit/mesh";
import { tempFolder } from "@devmesh/testkit/temp-folder";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { cachedFolder } from "../src/cached-folder.ts";

/** Clients that others' generators write from the OpenAPI document: each compiles and makes ten calls. */

/** Longest time of a command, in milliseconds: a compiler beside other suites. */
const COMMAND_MS = 600_000;

/** Short programs: the second compiler of Java takes longer than it saves. */
const quickJava = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC";

const sources = join(import.meta.dirname, "../src/generated-clients");
const tsc = join(repository, "node_modules/.bin/tsc");

async function run(folder: string, [program = "", ...args]: readonly string[], env: NodeJS.ProcessEnv = {}) {
  const { stdout } = await promisify(execFile)(program, args, {
    cwd: folder,
    env: { ...process.env, JAVA_TOOL_OPTIONS: quickJava, ...env },
    timeout: COMMAND_MS,
    maxBuffer: 64 * 1024 * 1024,
  });
  return stdout;
}
const has = (command: readonly string[]) =>
  run(sources, command).then(
    () => true,
    () => false,
  );

const fromMaven = await cachedFolder("generated-clients-java-7.25.0", (fresh) => {
  const copy = ["dependency:copy-dependencies", "-DexcludeTransitive=true", `-DoutputDirectory=${fresh}`];
  return run(sources, ["mvn", "--quiet", "--batch-mode", ...copy]);
});
const fromPip = await cachedFolder("generated-clients-python-0.29.1", (fresh) => {
  const wanted = ["openapi-python-client==0.29.1", "pydantic==2.14.4", "urllib3==2.8.0", "python-dateutil"];
  return run(sources, ["python3", "-m", "pip", "install", "--quiet", "--target", fresh, ...wanted]);
});
const jars = fromMaven === null ? [] : (await readdir(fromMaven)).map((name) => join(fromMaven, name));
const isGenerator = (jar: string) => jar.includes("openapi-generator-cli");
const classPath = jars.filter((jar) => !isGenerator(jar)).join(delimiter);

const openapiGenerator = (generator: string, ...options: readonly string[]) => [
  ...["java", "-jar", jars.find(isGenerator) ?? "", "generate", "--generator-name", generator, ...options],
  ...["--input-spec", "openapi.json", "--output", "."],
  ...["--global-property", "apiDocs=false,modelDocs=false,apiTests=false,modelTests=false"],
];

interface Generated {
  readonly client: string;
  /** What must be had, and whether it can be. */
  readonly needs: readonly (readonly [string, boolean])[];
  readonly generate: readonly string[];
  /** The program that makes the calls, and its place in the folder of the client. */
  readonly program: readonly [source: string, place: string];
  readonly compile: readonly (readonly string[])[];
  /** Arguments follow: URL, key, id of the device. */
  readonly start: readonly string[];
}

const generator = ["openapi-generator", fromMaven !== null && (await has(["java", "-version"]))] as const;
const packages = ["packages for Python", fromPip !== null] as const;
// Nothing imports the one file that is no Python: the generator finds no types for what a receiver of webhooks takes.
const compileAll = ["python3", "-m", "compileall", "-q", "-x", "webhook_receiver_api", "."];

const clients: readonly Generated[] = [
  {
    client: "Python by openapi-generator",
    needs: [generator, packages],
    generate: openapiGenerator("python"),
    program: ["calls.py", "calls.py"],
    compile: [compileAll],
    start: ["python3", "calls.py"],
  },
  {
    client: "Python by openapi-python-client",
    needs: [packages],
    generate: [
      ...[
        "python3",
        "-m",
        "openapi_python_client",
        "generate",
        "--path",
        "openapi.json",
        "--config",
        "config.json",
      ],
      ...["--meta", "none", "--output-path", "devmesh_client", "--fail-on-warning"],
    ],
    program: ["calls_by_httpx.py", "calls.py"],
    compile: [compileAll],
    start: ["python3", "calls.py"],
  },
  {
    client: "Go by openapi-generator",
    needs: [
      generator,
      ["packages for Go", await has(["go", "mod", "download", "gopkg.in/validator.v2@v2.0.1"])],
    ],
    generate: openapiGenerator("go"),
    program: ["calls.go", "calls/calls.go"],
    compile: [["go", "build", "-mod=mod", "-o", "made", "./calls"]],
    start: ["./made"],
  },
  {
    client: "Java by openapi-generator",
    needs: [generator, ["javac", await has(["javac", "-version"])]],
    // An empty list is refused where a list may be left out.
    generate: openapiGenerator(
      "java",
      "--library",
      "native",
      "--additional-properties",
      "containerDefaultToNull=true",
    ),
    program: ["Calls.java", "src/main/java/Calls.java"],
    compile: [
      ["bash", "-c", `javac -nowarn -d made -cp '${classPath}' $(find src/main/java -name '*.java')`],
    ],
    start: ["java", "-cp", `made${delimiter}${classPath}`, "Calls"],
  },
  {
    client: "TypeScript by openapi-generator",
    needs: [generator],
    generate: openapiGenerator("typescript-fetch", "--additional-properties", "importFileExtension=.js"),
    program: ["calls.ts.txt", "calls.ts"],
    compile: [
      [
        tsc,
        "--strict",
        "--target",
        "es2022",
        "--lib",
        "es2022,dom",
        "--module",
        "nodenext",
        "--outDir",
        "made",
        "calls.ts",
      ],
    ],
    start: [process.execPath, "made/calls.js"],
  },
];

let mesh: TestMesh;
beforeAll(async () => {
  mesh = await startMesh({ env: { WEBHOOK_ALLOW_NETWORKS: "127.0.0.0/8" } });
});
afterAll(async () => mesh?.stop(), 60_000);

/** Routes of a master key that take a body and no id. The example of a webhook has a name that must be resolved. */
const creations = Object.entries<RouteDeclaration>(api).filter(
  ([operation, { body, params, auth }]) =>
    body !== undefined && params === undefined && auth?.includes("master") && operation !== "createWebhook",
);

test.each(creations)("%s accepts the example of its body", async (operation, { path, body }) => {
  const { status, json } = await mesh.http(path, { body: body?.schema.meta()?.example });
  expect([json.detail, Math.floor(status / 100)]).toEqual([undefined, 2]);
  if (operation !== "createDevice") return;
  const { shadow } = CreatedDevice.parse(CreatedDevice.meta()?.example);
  expect(json.shadow).toEqual({ ...shadow, timestamp: expect.any(Number) });
});

for (const [place, { client, needs, generate, program, compile, start }] of clients.entries()) {
  const missing = needs.filter(([, isHad]) => !isHad).map(([what]) => what);
  const name = `${client} compiles and makes ten calls`;
  const check = async () => {
    await using folder = await tempFolder();
    const env = { PYTHONPATH: [folder.path, fromPip ?? ""].join(delimiter), PYTHONDONTWRITEBYTECODE: "1" };
    const description = await (await fetch(`${mesh.url}/api/v2/openapi.json`)).text();
    await writeFile(join(folder.path, "openapi.json"), description);
    await writeFile(join(folder.path, "config.json"), JSON.stringify({ post_hooks: [] }));
    await writeFile(join(folder.path, "package.json"), JSON.stringify({ type: "module" }));
    await run(folder.path, generate, env);
    const into = join(folder.path, program[1]);
    await mkdir(dirname(into), { recursive: true });
    await cp(join(sources, program[0]), into);
    for (const command of compile) await run(folder.path, command, env);
    const id = `lamp-${place}`;
    const printed = await run(folder.path, [...start, mesh.url, mesh.masterKey, id], env);
    expect(printed.trimEnd().split("\n")).toEqual([
      ...[id, "1", "true", id, "value", "2099", "shadow", "offline", "device_offline", "deleted"],
    ]);
  };
  if (missing.length === 0) test(name, check, 4 * COMMAND_MS);
  else test.skip(`${name} (cannot be had: ${missing.join(", ")})`, check);
}
