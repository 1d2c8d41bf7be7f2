import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { cp, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { constants } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { commandLineOf } from "@devmesh/supervisor/process/command-line";
import { eventually } from "@devmesh/testkit/eventually";
import { tempFolder } from "@devmesh/testkit/temp-folder";
import { describe, expect, test } from "@jest/globals";

const install = new URL("../install.mjs", import.meta.url).href;
const firstInstallation = "Installing dependencies (npm ci, once).\nnpm prints this\n";
const locked = (version: string) =>
  JSON.stringify({
    packages: {
      "": {},
      "node_modules/zod": { version, resolved: "z" },
      "node_modules/jest": { version: "1.0.0", resolved: "j", dev: true },
      "node_modules/node-other-platform": { version: "1.0.0", optional: true },
    },
  });

/** A repository whose `npm ci` writes down that it ran, and takes a moment. */
async function repository(folder: string) {
  const npm = join(folder, "npm-cli.js");
  const root = join(folder, "root");
  await mkdir(root);
  await writeFile(join(root, "package-lock.json"), locked("1.0.0"));
  await writeFile(
    npm,
    `const fs = require("node:fs");
     fs.appendFileSync(${JSON.stringify(join(folder, "runs"))}, process.argv.slice(2, 4).join(" ") + "\\n");
     fs.writeFileSync(${JSON.stringify(join(folder, "arguments"))}, process.argv.slice(2).join("\\n"));
     console.log("npm prints this");
     if (process.env.BROKEN_NPM) process.exit(1);
     if (process.env.SLOW_NPM) {
       fs.writeFileSync(process.env.SLOW_NPM, String(process.pid));
       return setTimeout(() => {}, 60_000);
     }
     fs.rmSync("node_modules", { recursive: true, force: true });
     const finish = () => {
       if (process.env.HELD_UNTIL && !fs.existsSync(process.env.HELD_UNTIL)) return setTimeout(finish, 20);
       fs.mkdirSync("node_modules");
       const { packages } = JSON.parse(fs.readFileSync("package-lock.json", "utf8"));
       if (process.argv.includes("--omit=dev"))
         for (const [path, { dev }] of Object.entries(packages)) if (dev) delete packages[path];
       fs.writeFileSync("node_modules/.package-lock.json", JSON.stringify({ packages }));
     };
     setTimeout(finish, 300);`,
  );
  return {
    root,
    npm,
    runs: async () =>
      (await readFile(join(folder, "runs"), "utf8").catch(() => "")).split("\n").filter(Boolean),
    /** What `npm ci` was given last. */
    arguments: async () => (await readFile(join(folder, "arguments"), "utf8")).split("\n"),
    /** Runs the installation in a separate process; returns what it prints to stderr, and its exit code. */
    async install(
      env: NodeJS.ProcessEnv = {},
      started: (child: ChildProcess) => void = () => {},
      options: { readonly lean?: boolean } = {},
    ) {
      const script = `
        const { ensureInstalled } = await import(${JSON.stringify(install)});
        await ensureInstalled(${JSON.stringify(root)}, ${JSON.stringify(options)}).catch((error) => {
          console.error(error.message);
          process.exitCode = 1;
        });`;
      const child = spawn(process.execPath, ["--input-type=module", "-e", script], {
        env: { ...process.env, npm_execpath: npm, ...env },
        stdio: ["ignore", "inherit", "pipe"],
      });
      started(child);
      let output = "";
      child.stderr.setEncoding("utf8").on("data", (text: string) => {
        output += text;
      });
      const [code] = await once(child, "close");
      return { code, output };
    },
  };
}

describe("dependencies", () => {
  test("are installed without a word on stdout, whichever command comes first", async () => {
    const launcher = new URL("..", import.meta.url);
    await using folder = await tempFolder();
    const repo = await repository(folder.path);
    const copy = join(repo.root, "tools/launcher");
    await mkdir(copy, { recursive: true });
    for (const file of ["run.mjs", "node-version.mjs", "bootstrap.mjs", "install.mjs", "install-all.mjs"])
      await cp(new URL(file, launcher), join(copy, file));
    for (const [, program = ""] of (await readFile(join(copy, "run.mjs"), "utf8")).matchAll(
      /path: "(.+?)"/g,
    )) {
      await mkdir(dirname(join(repo.root, program)), { recursive: true });
      await writeFile(join(repo.root, program), 'process.stdout.write("for the file\\n");');
    }
    const { scripts } = JSON.parse(await readFile(new URL("../../package.json", launcher), "utf8"));
    const installing = Object.entries<string>(scripts).filter(([, script]) =>
      script.includes("tools/launcher/"),
    );
    expect(installing.length).toBeGreaterThan(8);
    for (const [name, script] of installing) {
      await rm(join(repo.root, "node_modules"), { recursive: true, force: true });
      const [command = ""] = script.split(" && ");
      const { stdout, stderr } = await promisify(execFile)("sh", ["-c", command], {
        cwd: repo.root,
        env: { ...process.env, npm_execpath: repo.npm },
      });
      expect([name, stdout]).toEqual([name, name === "clients" ? "" : "for the file\n"]);
      expect(stderr).toBe(firstInstallation);
    }
  });

  test("are installed once, and again when the lock file has changed", async () => {
    await using folder = await tempFolder();
    const repo = await repository(folder.path);
    expect(await repo.install()).toEqual({ code: 0, output: firstInstallation });
    expect(await repo.install()).toEqual({ code: 0, output: "" });
    await writeFile(join(repo.root, "package-lock.json"), locked("2.0.0"));
    await repo.install();
    expect(await repo.runs()).toEqual(["ci --ignore-scripts", "ci --ignore-scripts"]);
  });

  test("are installed by one of many starts at once, and the others wait for it", async () => {
    await using folder = await tempFolder();
    const repo = await repository(folder.path);
    const released = join(folder.path, "released");
    let waiting = 0;
    const count = (child: ChildProcess) =>
      child.stderr?.on("data", (text) => {
        if (String(text).startsWith("Waiting for another process")) waiting++;
      });
    const starts = Array.from({ length: 6 }, () => repo.install({ HELD_UNTIL: released }, count));
    await eventually(() => waiting === 5);
    await writeFile(released, "");
    const all = await Promise.all(starts);
    expect(all.map(({ code }) => code)).toEqual([0, 0, 0, 0, 0, 0]);
    expect(await repo.runs()).toHaveLength(1);
    expect(existsSync(join(repo.root, ".install.lock"))).toBe(false);
  });

  test("are all installed, whatever the settings of npm leave out", async () => {
    await using folder = await tempFolder();
    const repo = await repository(folder.path);
    await repo.install({ NODE_ENV: "production", npm_config_omit: "dev optional" });
    expect(await repo.arguments()).toEqual(expect.arrayContaining(["--include=optional", "--include=dev"]));
  });

  test("are all installed for what is built with the compiler", async () => {
    const repositoryRoot = new URL("../../..", import.meta.url);
    const { scripts } = JSON.parse(await readFile(new URL("package.json", repositoryRoot), "utf8"));
    expect(scripts.clients).toMatch(/^node tools\/launcher\/install-all\.mjs && /);
    await using folder = await tempFolder();
    const repo = await repository(folder.path);
    await repo.install({}, undefined, { lean: true });
    await cp(new URL("tools/launcher", repositoryRoot), join(repo.root, "tools/launcher"), {
      recursive: true,
      filter: (path) => !path.endsWith("node_modules"),
    });
    const all = spawn(process.execPath, [join(repo.root, "tools/launcher/install-all.mjs")], {
      env: { ...process.env, npm_execpath: repo.npm },
    });
    expect(await once(all, "close")).toEqual([0, null]);
    expect(await repo.arguments()).toEqual(expect.arrayContaining(["--include=dev"]));
  });

  test("of tests are not installed for a start, and added for the tests, below a mesh that runs", async () => {
    await using folder = await tempFolder();
    const repo = await repository(folder.path);
    const installLean = () => repo.install({}, undefined, { lean: true });
    await installLean();
    expect(await repo.arguments()).toEqual(
      expect.arrayContaining(["ci", "--include=optional", "--omit=dev"]),
    );
    expect((await installLean()).output).toBe("");
    expect((await repo.install()).output).toBe("Installing what tests need (npm, once).\nnpm prints this\n");
    expect(await repo.arguments()).toEqual(expect.arrayContaining(["install", "--no-save", "--include=dev"]));
    expect((await installLean()).output).toBe("");
    expect((await repo.install()).output).toBe("");
    expect(await repo.runs()).toHaveLength(2);
  });

  test("that somebody has installed by hand are left alone", async () => {
    await using folder = await tempFolder();
    const repo = await repository(folder.path);
    await mkdir(join(repo.root, "node_modules"));
    await writeFile(
      join(repo.root, "node_modules", ".package-lock.json"),
      JSON.stringify({
        packages: {
          "node_modules/zod": { version: "1.0.0", resolved: "z" },
          "node_modules/jest": { version: "1.0.0", resolved: "j" },
        },
      }),
    );
    expect(await repo.install()).toEqual({ code: 0, output: "" });
    expect(await repo.runs()).toEqual([]);
  });

  test("that an interrupted installation left incomplete are installed anew", async () => {
    await using folder = await tempFolder();
    const repo = await repository(folder.path);
    await mkdir(join(repo.root, "node_modules", "zod"), { recursive: true });
    await repo.install();
    expect(await repo.runs()).toHaveLength(1);
  });

  test("are installed although a process that was killed left its lock behind", async () => {
    await using folder = await tempFolder();
    const repo = await repository(folder.path);
    await writeFile(join(repo.root, ".install.lock"), `${2 ** 30} 1`);
    const all = await Promise.all(Array.from({ length: 4 }, () => repo.install()));
    expect(all.map(({ code }) => code)).toEqual([0, 0, 0, 0]);
    expect(await repo.runs()).toHaveLength(1);
  });

  test("that cannot be installed are one sentence, and the lock is free", async () => {
    await using folder = await tempFolder();
    const repo = await repository(folder.path);
    const { code, output } = await repo.install({ BROKEN_NPM: "1" });
    expect(code).toBe(1);
    expect(output.trim().split("\n").at(-1)).toBe(
      "The dependencies could not be installed; npm says above why.",
    );
    expect(existsSync(join(repo.root, ".install.lock"))).toBe(false);
    await rm(join(repo.root, "node_modules"), { recursive: true, force: true });
    expect((await repo.install()).code).toBe(0);
  });
});

test.each(["SIGINT", "SIGTERM", "SIGHUP"] as const)(
  "%s in the middle of an installation ends npm too, and the next start installs anew",
  async (signal) => {
    await using folder = await tempFolder();
    const repo = await repository(folder.path);
    const pidFile = join(folder.path, "npm.pid");
    const npmPid = async () => Number(await readFile(pidFile, "utf8").catch(() => ""));
    let installer: ChildProcess | undefined;
    const interrupted = repo.install({ SLOW_NPM: pidFile }, (child) => {
      installer = child;
    });
    await eventually(async () => (await npmPid()) > 0);
    installer?.kill(signal);
    expect((await interrupted).code).toBe(128 + constants.signals[signal]);
    expect(await commandLineOf(await npmPid())).toBeNull();
    expect(existsSync(join(repo.root, ".install.lock"))).toBe(false);
    expect((await repo.install()).output).toBe(firstInstallation);
  },
);

test("an installation whose start was killed is waited for, not begun anew beside npm, which goes on", async () => {
  await using folder = await tempFolder();
  const repo = await repository(folder.path);
  const pidFile = join(folder.path, "npm.pid");
  const npmPid = async () => Number(await readFile(pidFile, "utf8").catch(() => ""));
  let installer: ChildProcess | undefined;
  const killed = repo.install({ SLOW_NPM: pidFile }, (child) => {
    installer = child;
  });
  await eventually(async () => (await npmPid()) > 0);
  installer?.kill("SIGKILL");
  let output = "";
  const next = repo.install({}, (child) => {
    child.stderr?.on("data", (text: string) => {
      output += text;
    });
  });
  await eventually(() => output.startsWith("Waiting for another process"));
  expect(await repo.runs()).toHaveLength(1);
  process.kill(await npmPid(), "SIGTERM");
  expect((await next).code).toBe(0);
  expect(await repo.runs()).toHaveLength(2);
  await killed;
});

test("a Node that is too old is told so in one sentence", async () => {
  const source = await readFile(new URL("../node-version.mjs", import.meta.url), "utf8");
  const script = `Object.defineProperty(process, "versions", { value: { node: "18.20.0" } });${source}`;
  const child = spawn(process.execPath, ["-e", script], { stdio: ["ignore", "inherit", "pipe"] });
  let output = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    output += text;
  });
  const [code] = await once(child, "close");
  expect(code).toBe(1);
  expect(output).toMatch(/^Devmesh needs Node 20 or newer to start; this is v.*\n$/);
});

test("the lean installation has no package that only the clients' development needs", async () => {
  const root = join(import.meta.dirname, "../../..");
  const { devDependencies } = JSON.parse(
    await readFile(join(root, "clients/typescript/package.json"), "utf8"),
  );
  const { packages } = JSON.parse(await readFile(join(root, "package-lock.json"), "utf8"));
  for (const name of Object.keys(devDependencies)) {
    const locked = packages[`clients/typescript/node_modules/${name}`] ?? packages[`node_modules/${name}`];
    if (!name.startsWith("@devmesh/")) expect([name, locked.dev]).toEqual([name, true]);
  }
});
