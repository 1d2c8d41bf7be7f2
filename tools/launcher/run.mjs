#!/usr/bin/env node
import "./node-version.mjs";

/** What npm's scripts run, by name; `ownSession` and `lean` as in `runOnPlatformNode`. */
const programs = {
  start: { path: "tools/launcher/src/launch.ts", ownSession: true },
  dev: { path: "tools/launcher/src/dev.ts", ownSession: false },
  backup: { path: "supervisor/src/backup.ts", ownSession: false },
  logs: { path: "supervisor/src/logs.ts", ownSession: false },
  secrets: { path: "tools/launcher/src/deployment/print-secrets.ts", ownSession: false },
  device: { path: "tools/simulator/src/device.ts", ownSession: false },
  fleet: { path: "tools/simulator/src/fleet.ts", ownSession: false },
  firmware: { path: "tools/launcher/src/release-firmware.ts", ownSession: false, lean: false },
  screenshots: { path: "e2e/src/screenshots/main.ts", ownSession: false, lean: false },
  test: { path: "tools/test-run/src/run-tests.ts", ownSession: false, lean: false },
  cluster: { path: "k8s/src/cluster/main.ts", ownSession: false, lean: false },
  bench: { path: "bench/run.ts", ownSession: false, lean: false },
};

const [name, ...args] = process.argv.slice(2);
const program = programs[name];
if (program === undefined) {
  console.error(`Usage: node run.mjs ${Object.keys(programs).join("|")} [ARGUMENT ...]`);
  process.exit(2);
}
// Not imported statically: an older Node could not parse it, and would not print its version.
void import("./bootstrap.mjs").then(({ runOnPlatformNode }) => runOnPlatformNode(program, args));
