import { spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, describe, expect, test } from "@jest/globals";
import { childRegistry } from "../../src/process/child-registry.ts";
import { commandLineOf, endByCommandLine } from "../../src/process/command-line.ts";
import { guardAgainstOwnDeath } from "../../src/process/parent-death-guard.ts";

const children = childRegistry();
afterAll(() => children.killAll());

async function gone(pid: number): Promise<void> {
  for (let tries = 0; tries < 200; tries++) {
    if ((await commandLineOf(pid)) === null) return;
    await sleep(25);
  }
  throw new Error(`process ${pid} still runs`);
}

describe("a child of the supervisor", () => {
  test("that ignores SIGTERM is killed after its grace", async () => {
    const child = children.spawn("sh", ["-c", "trap '' TERM; echo up; while :; do sleep 1; done"], {
      stdio: ["ignore", "pipe", "ignore"],
      guarded: false,
    });
    if (child.process.stdout) await once(child.process.stdout, "data");
    child.process.stdout?.destroy();
    await child.end(100);
    expect(await child.ended).toBe("was killed (SIGKILL)");
  });

  test("that cannot be run tells so as its end", async () => {
    const child = children.spawn("/nonexistent/program", [], { guarded: true });
    expect(await child.ended).toMatch(/could not be run \(.*ENOENT/);
  });

  test("that is guarded ends when its parent is killed without a word", async () => {
    const guard = new URL("../../src/process/parent-death-guard.ts", import.meta.url).href;
    const script = `
      import { spawn } from "node:child_process";
      import { guardAgainstOwnDeath } from ${JSON.stringify(guard)};
      const guard = guardAgainstOwnDeath();
      const child = spawn("sleep", ["300"], { detached: true, stdio: "ignore" });
      guard.watch(child.pid);
      console.log(child.pid);
      setInterval(() => {}, 1000);`;
    const parent = spawn(process.execPath, ["--input-type=module", "-e", script], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const [text] = await once(parent.stdout, "data");
    const pid = Number(text);
    expect(await commandLineOf(pid)).toBe("sleep 300");
    parent.kill("SIGKILL");
    await gone(pid);
  });

  test("that is released from its guard lives on", async () => {
    const child = spawn("sleep", ["300"], { stdio: "ignore" });
    const pid = child.pid ?? 0;
    const guard = guardAgainstOwnDeath();
    guard.watch(pid);
    guard.release();
    await sleep(200);
    expect(await commandLineOf(pid)).toBe("sleep 300");
    child.kill("SIGKILL");
  });
});

describe("a leftover process", () => {
  test("is ended only when its command line is the expected one", async () => {
    const child = spawn("sleep", ["301"], { stdio: "ignore" });
    const pid = child.pid ?? 0;
    expect(await endByCommandLine(pid, ["sleep", "30"], 1_000)).toBe(false);
    expect(await endByCommandLine(pid, ["sleep", "301"], 1_000)).toBe(true);
    expect(child.signalCode ?? (await once(child, "exit"))[1]).toBe("SIGTERM");
  });

  test("that does not exist is no matter", async () => {
    expect(await endByCommandLine(Number.NaN, ["x"], 10)).toBe(false);
    expect(await endByCommandLine(2 ** 30, ["x"], 10)).toBe(false);
  });
});
