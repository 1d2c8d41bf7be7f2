import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { buildDashboard } from "./dashboard-build.ts";
import { type Demo, startDemo } from "./demo-process.ts";
import { launcherArguments, usage } from "./launcher-arguments.ts";
import { type Mesh, startMesh } from "./mesh/mesh.ts";
import { type MeshSettings, meshSettings } from "./mesh/settings.ts";
import { NatsServerNotFound } from "./nats-server/find-nats-server.ts";
import { type ChildRegistry, childRegistry } from "./process/child-registry.ts";
import { StartFailure } from "./process/running-process.ts";
import { stopRequest } from "./process/stop-request.ts";
import { welcome } from "./welcome.ts";

const say = (sentence: string) => process.stdout.write(`${sentence}\n`);
const complain = (line: string) => process.stderr.write(`${line}\n`);
for (const stream of [process.stdout, process.stderr]) {
  // Whoever read our output has gone; the mesh stays.
  stream.on("error", () => {});
}

process.exitCode = await launch();
// Sockets of a demonstration that was cut off, or of a look-up, must not keep the process.
process.exit();

/** The exit code: 0 after an orderly stop, 1 when the mesh could not start, 2 for a wrong command line. */
async function launch(): Promise<number> {
  const wanted = launcherArguments(process.argv.slice(2));
  if (wanted.kind === "help") {
    say(usage);
    return 0;
  }
  if (wanted.kind === "wrong") {
    complain(`${wanted.reason}\n\n${usage}`);
    return 2;
  }
  const children = childRegistry();
  const stop = stopRequest(() => {
    children.killAll();
    process.exit(130);
  });
  let mesh: Mesh | null = null;
  let demo: Demo | null = null;
  try {
    const settings = meshSettings(process.env);
    const firstStart = (await masterKeyOf(settings)) === null;
    const repository = resolve(import.meta.dirname, "../../..");
    if (!wanted.without.has("gateway")) {
      await buildDashboard({ repository, children, say, complain }, stop.signal);
    }
    // Whatever a mesh writes, stores and logs included, is its owner's alone; its parts inherit this. The dashboard
    // is everybody's.
    process.umask(0o077);
    mesh = await startMesh(
      { settings, env: process.env, repository, without: wanted.without, children, say, complain },
      stop.signal,
    );
    const masterKey = await masterKeyOf(settings);
    if (wanted.demo && masterKey) demo = await demonstrate(children, repository, settings);
    say(welcome({ mesh, masterKey, firstStart, demo: demo !== null }));
    say(`ready ${mesh.url}`);
    await stop.requested;
    say("Stopping.");
    return 0;
  } catch (error) {
    if (stop.signal.aborted) return 0;
    if (!(error instanceof StartFailure || error instanceof NatsServerNotFound)) throw error;
    complain(error.message);
    return 1;
  } finally {
    await demo?.stop();
    await mesh?.stop();
  }
}

async function masterKeyOf({ dataDir }: MeshSettings): Promise<string | null> {
  const text = await readFile(resolve(dataDir, "master-key"), "utf8").catch(() => "");
  return text.trim() || null;
}

async function demonstrate(
  children: ChildRegistry,
  repository: string,
  { dataDir }: MeshSettings,
): Promise<Demo | null> {
  try {
    const demo = await startDemo(children, repository, dataDir);
    say(`Simulated devices: ${demo.devices.join(", ")}.`);
    return demo;
  } catch (error) {
    complain(`The simulated devices could not start: ${error instanceof Error ? error.message : error}.`);
    return null;
  }
}
