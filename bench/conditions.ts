import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { availableParallelism, cpus, loadavg, totalmem } from "node:os";
import { promisify } from "node:util";
import { repository } from "@devmesh/launcher/mesh/service-process";
import { findNatsServer } from "@devmesh/launcher/nats-server/find-nats-server";

const run = promisify(execFile);

/** Commit, machine and versions: the same for all benchmarks of a run. */
export async function describeSetting() {
  const git = (...args: string[]) =>
    run("git", args, { cwd: repository }).then(
      ({ stdout }) => stdout.trim(),
      () => "",
    );
  const changed = await git("status", "--porcelain", "--", ".", ":!docs");
  const gigabytes = Math.round(totalmem() / 2 ** 30);
  return {
    commit: `${await git("rev-parse", "--short=8", "HEAD")}${changed === "" ? "" : " and changes"}`,
    machine: `${availableParallelism()} × ${cpus()[0]?.model.trim()}, ${gigabytes} GB, ${process.platform}`,
    versions: `Node ${process.versions.node}, nats-server ${await natsServerVersion()}`,
  };
}

async function natsServerVersion(): Promise<string> {
  const found = await findNatsServer({ env: { ...process.env, NATS_URL: undefined } });
  if (found.kind !== "binary") return "";
  const { stdout } = await run(found.path, ["--version"]);
  return stdout.replace("nats-server: v", "").trim();
}

/** Load average, and processor time that the host gave to other machines, from now until the result is called. */
export async function watchLoad(): Promise<() => Promise<{ readonly load: string; readonly steal: string }>> {
  const [loadBefore] = loadavg();
  const before = await processorTime();
  return async () => {
    const after = await processorTime();
    const share = (after.stolen - before.stolen) / (after.all - before.all);
    const loads = [loadBefore, loadavg()[0]].map((load) => load?.toFixed(1));
    return { load: loads.join(" to "), steal: Number.isNaN(share) ? "" : `${(share * 100).toFixed(1)} %` };
  };
}

/** Of all processors since the machine started, in clock ticks; NaN where there is no `/proc`. */
async function processorTime() {
  const text = await readFile("/proc/stat", "utf8").catch(() => "");
  const ticks = (/^cpu +(.*)$/m.exec(text)?.[1] ?? "").split(" ").map(Number);
  // The eighth is steal; the two after it are part of the first.
  return {
    all: ticks.slice(0, 8).reduce((sum, value) => sum + value, 0),
    stolen: ticks[7] ?? Number.NaN,
  };
}
