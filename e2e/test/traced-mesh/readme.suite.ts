import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { text } from "node:stream/consumers";
import type { TestMesh } from "@devmesh/testkit/mesh";
import { expect, test } from "@jest/globals";

const root = new URL("../../../", import.meta.url);
/** The code blocks of a language under a heading of the README. */
async function codeBlocks(heading: string, language: string): Promise<string[]> {
  const readme = await readFile(new URL("README.md", root), "utf8");
  const section = readme.split(`\n## ${heading}\n`)[1]?.split("\n## ")[0] ?? "";
  const blocks = section.matchAll(new RegExp(`\`\`\`${language}\n([\\s\\S]*?)\`\`\``, "g"));
  return [...blocks].map(([, block = ""]) => block);
}

/** A documented answer as a pattern: `…` is what differs from run to run or is left out. */
function patternOf(answer: string): RegExp {
  const literal = answer.replaceAll(/[\\^$.*+?()[\]{}|]/g, "\\$&");
  return new RegExp(`^${literal.replaceAll("…", ".*")}$`);
}

/** What the README shows. The mesh has no device `pump-1` before. */
export function readme(shared: () => TestMesh): void {
  test("the commands under Try give the answers that the README shows", async () => {
    const mesh = shared();
    const answers = (await codeBlocks("Try", "json")).flatMap((block) => block.trim().split("\n"));
    // A reader takes some seconds from one block to the next: the device reports and publishes meanwhile.
    const commands = (await codeBlocks("Try", "sh"))
      .join("sleep 3\n")
      .replaceAll("http://127.0.0.1:8080", mesh.url)
      .replaceAll(".data/master-key", `${mesh.dataDir}/master-key`);
    expect(commands.match(/^curl /gm)).toHaveLength(answers.length);
    const shell = spawn("bash", ["-c", `set -e\n${commands}`], {
      cwd: root,
      detached: true,
      env: {
        ...process.env,
        PORT: new URL(mesh.url).port,
        MQTT_PORT: new URL(mesh.mqttUrl).port,
        DATA_DIR: mesh.dataDir,
      },
      stdio: ["ignore", "pipe", "inherit"],
    });
    const output = text(shell.stdout);
    const [code] = await once(shell, "exit");
    // The device outlives its shell and holds the output open.
    if (shell.pid !== undefined) process.kill(-shell.pid, "SIGKILL");
    const lines = (await output).trim().split("\n");
    expect([code, lines]).toEqual([0, expect.arrayContaining(["pump-1 is connected"])]);
    expect(lines.filter((line) => line !== "pump-1 is connected")).toEqual(
      answers.map((answer) => expect.stringMatching(patternOf(answer))),
    );
  }, 60_000);
}
