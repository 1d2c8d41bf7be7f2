/** `npm run bench [-- NAME...]`: benchmarks in turn, each of which prints rows for the table of docs/performance.md. */
import { type ChildProcess, execFileSync, fork } from "node:child_process";
import { once } from "node:events";
import { availableParallelism, cpus, loadavg } from "node:os";
import { join } from "node:path";

/** Those that run without a name, with their arguments: together less than 15 minutes. */
const usual: Readonly<Record<string, string>> = {
  "device-read": "1.5",
  "rpc-round-trip": "1.5",
  "mesh-start": "3",
  "mqtt-logins": "",
  "device-creations": "2",
  "device-list": "20000",
  "device-where": "50000",
  memory: "",
  ingestion: "20000",
};
/** Those that take longer, or suffer from or disturb other work on the machine. */
const byName: Readonly<Record<string, string>> = {
  "broker-sync": "",
  dashboard: "",
  firmware: "",
  "firmware-push": "",
  attack: "6",
  fleet: "15000 200000 10",
  "frame-delivery": "1",
  jobs: "",
  "job-calls": "10000",
  "job-plan": "100000",
  "abandoned-lists": "",
  alerts: "",
  series: "30",
  "series-memory": "",
  "shadow-updates": "950",
  strangers: "30",
  webhooks: "1000",
  "unit-costs": "1000",
};

const all = { ...usual, ...byName };
const names = process.argv.slice(2);
if (names.some((name) => all[name] === undefined)) {
  const lines = [usual, byName].map((some) => Object.keys(some).join(", "));
  console.error(
    `Usage: npm run bench [-- NAME...]\n\nWithout a name: ${lines[0]}.\nOnly by name: ${lines[1]}.`,
  );
  process.exit(2);
}

let running: ChildProcess | undefined;
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
  process.on(signal, () => {
    running?.kill();
    process.exit(130);
  });
}

const commit = execFileSync("git", ["describe", "--always", "--dirty"], { encoding: "utf8" }).trim();
console.log(
  `${commit}, ${availableParallelism()} × ${cpus()[0]?.model.trim()}, Node ${process.versions.node}`,
);
const failed: string[] = [];
for (const name of names.length > 0 ? names : Object.keys(usual)) {
  const args = all[name]?.split(" ").filter(Boolean) ?? [];
  console.log(`\n${[name, ...args].join(" ")}, load average ${loadavg()[0]?.toFixed(1)}`);
  const execArgv = ["--disable-warning=ExperimentalWarning"];
  running = fork(join(import.meta.dirname, `${name}.ts`), args, { execArgv });
  const [code] = await once(running, "exit");
  if (code !== 0) failed.push(name);
}
if (failed.length > 0) console.log(`FAILED: ${failed.join(", ")}`);
process.exit(failed.length === 0 ? 0 : 1);
