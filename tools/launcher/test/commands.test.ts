import { execFile } from "node:child_process";
import { resolve } from "node:path";
import { tempFolder } from "@devmesh/testkit/temp-folder";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";

let folder: Awaited<ReturnType<typeof tempFolder>>;
beforeEach(async () => {
  folder = await tempFolder();
});
afterEach(async () => {
  await folder[Symbol.asyncDispose]();
});

interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a command with nothing in its environment but an empty data folder and the cache of compiled code. */
function run(program: string, args: readonly string[]): Promise<Ended> {
  const script = resolve(import.meta.dirname, "../../..", program);
  const { PATH, NODE_COMPILE_CACHE } = process.env;
  const env = { PATH, NODE_COMPILE_CACHE, DATA_DIR: folder.path };
  return new Promise((done) => {
    const child = execFile(
      process.execPath,
      ["--disable-warning=ExperimentalWarning", script, ...args],
      { cwd: folder.path, env },
      (_, stdout, stderr) => done({ code: child.exitCode, stdout, stderr }),
    );
  });
}

interface Case {
  readonly program: string;
  readonly wrong: readonly string[];
  readonly why: string;
  /** Arguments that are right, though what they need is missing. */
  readonly failing: readonly string[];
  readonly failure: RegExp;
}

const cases: readonly Case[] = [
  {
    program: "tools/simulator/src/fleet.ts",
    wrong: ["--seed", "2"],
    why: "--seed needs --flaky.",
    failing: ["--devices", "1"],
    failure: /^No mesh runs with the data folder .*\n$/,
  },
  {
    program: "tools/simulator/src/device.ts",
    wrong: ["lamp", "--kind", "toaster"],
    why: "There is no kind toaster.",
    failing: ["lamp"],
    failure: /^No mesh runs with the data folder .*\n$/,
  },
  {
    program: "supervisor/src/backup.ts",
    wrong: [],
    why: "One folder is needed.",
    failing: ["/dev/null/backup"],
    failure: /^[^\n]+\n$/,
  },
  {
    program: "supervisor/src/logs.ts",
    wrong: ["nobody"],
    why: "No part of the mesh is called nobody.",
    failing: ["keys"],
    failure: /^.*\/logs has no such lines; [^\n]+\n$/,
  },
  {
    program: "tools/launcher/src/deployment/print-secrets.ts",
    wrong: ["podman"],
    why: "Say compose or kubernetes.",
    failing: ["kubernetes"],
    failure: /^Set SMTP_URL [^\n]+\n$/,
  },
  {
    program: "k8s/src/cluster/main.ts",
    wrong: ["external"],
    why: "Say single or production or external-mongodb, or none.",
    failing: ["--context", "none"],
    failure: /^(kubectl is not on the PATH|error: context .*)\n$/,
  },
];

describe.each(cases)("$program", ({ program, wrong, why, failing, failure }) => {
  test("explains itself on stdout and ends with 0", async () => {
    expect(await run(program, ["--help"])).toEqual({
      code: 0,
      stdout: expect.stringMatching(/^Usage: /),
      stderr: "",
    });
  });

  test("says on stderr what is wrong with its command line, then how it is called, and ends with 2", async () => {
    const ended = await run(program, wrong);
    expect(ended).toEqual({ code: 2, stdout: "", stderr: expect.stringContaining(`${why}\n\nUsage: `) });
    expect(await run(program, ["--no-such-option"])).toMatchObject({ code: 2, stdout: "" });
  });

  test("says on stderr why it failed, without a stack, and ends with 1", async () => {
    expect(await run(program, failing)).toEqual({
      code: 1,
      stdout: "",
      stderr: expect.stringMatching(failure),
    });
  });
});
