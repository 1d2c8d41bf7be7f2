import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { text } from "node:stream/consumers";
import type { TestMesh } from "@devmesh/testkit/mesh";

const root = new URL("../../../", import.meta.url);

/** The code blocks of a language under a heading of a document. */
export async function codeBlocks(document: string, heading: string, language: string): Promise<string[]> {
  const all = await readFile(new URL(document, root), "utf8");
  const section = all.split(`\n## ${heading}\n`)[1]?.split("\n## ")[0] ?? "";
  const blocks = section.matchAll(new RegExp(`\`\`\`${language}\n([\\s\\S]*?)\`\`\``, "g"));
  return [...blocks].map(([, block = ""]) => block);
}

/** A documented line as a pattern: `…` is what differs from run to run or is left out. */
export function patternOf(line: string): RegExp {
  const literal = line.replaceAll(/[\\^$.*+?()[\]{}|]/g, "\\$&");
  return new RegExp(`^${literal.replaceAll("…", ".*")}$`);
}

/** For how long commands may run, in milliseconds: each starts npm and node, which a busy machine makes slow. */
const longestMs = 400_000;

/** Time of a test that runs commands, in milliseconds. */
export const commandsTimeMs = longestMs + 30_000;

/**
 * Runs commands in the folder of the repository, for a mesh; programs that they leave running are ended. The exit code
 * is null when they took too long.
 */
export async function runCommands(
  mesh: TestMesh,
  commands: string,
): Promise<{ readonly code: number | null; readonly lines: readonly string[] }> {
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
  const endAll = () => {
    if (shell.pid !== undefined) process.kill(-shell.pid, "SIGKILL");
  };
  const tooLong = setTimeout(endAll, longestMs);
  const [code] = await once(shell, "exit");
  clearTimeout(tooLong);
  // A program in the background outlives its shell and holds the output open.
  if (code !== null) endAll();
  return { code, lines: (await output).trim().split("\n") };
}
