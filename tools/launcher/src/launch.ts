import { readFile } from "node:fs/promises";
import { hostname } from "node:os";
import { join, resolve } from "node:path";
import { inspect } from "node:util";
import { buildDashboard } from "./build/dashboard-build.ts";
import { bundleServices } from "./build/service-bundles.ts";
import { type Demo, startDemo } from "./demo-process.ts";
import { type LauncherOptions, launcherArguments, usage } from "./launcher-arguments.ts";
import { proxyAdvice } from "./mesh/broker-addresses.ts";
import { type Mesh, startMesh } from "./mesh/mesh.ts";
import { repository } from "./mesh/service-process.ts";
import { type MeshSettings, meshSettings } from "./mesh/settings.ts";
import { type ChildRegistry, childRegistry } from "./process/child-registry.ts";
import { runCommand, type Terminal } from "./process/command.ts";
import { messageOf, StartFailure } from "./process/errors.ts";
import { stopRequest } from "./process/stop-request.ts";
import { welcome } from "./welcome.ts";

const terminal: Terminal = console;
/** A stop that takes longer, in milliseconds, is explained. */
const quickStopMs = 1_500;
/** Where the Dockerfile puts the bundles of the services. */
const bundlesInImage = join(repository, "dist", "image");
// The mesh stays when nobody reads its output any more.
for (const stream of [process.stdout, process.stderr]) stream.on("error", () => {});

await runCommand({ usage, read: launcherArguments, run: launch });

async function launch(options: LauncherOptions): Promise<void> {
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
    const bundles = options.container ? bundlesInImage : await build(options, children, stop.signal);
    // Files of the mesh are private to their owner, and its parts inherit this; the dashboard's are not.
    process.umask(0o077);
    mesh = await startMesh(
      { settings, env: process.env, repository, bundles, without: options.without, children, terminal },
      stop.signal,
    );
    const masterKey = await masterKeyOf(settings);
    if (options.demo && masterKey) demo = await demonstrate(children, settings);
    terminal.log(
      welcome({
        url: options.container ? settings.publicUrl : mesh.url,
        mqttUrl: settings.mqttPublicUrl ?? mesh.mqttUrl,
        folder: mesh.folder,
        masterKey,
        // A file, and the log of a container with a terminal, too, is kept and read by others.
        showsKey: firstStart && !options.container && process.stdout.isTTY,
        demo: demo !== null,
        container: options.container ? hostname() : null,
      }),
    );
    const advice = proxyAdvice(settings);
    if (advice !== null) terminal.warn(advice);
    terminal.log(`ready ${mesh.url}`);
    await stop.requested;
    terminal.log("Stopping.");
    const waiting = `Requests and calls that run have up to ${settings.drainMs / 1_000} s (DRAIN_MS).`;
    setTimeout(() => terminal.log(waiting), quickStopMs).unref();
  } catch (error) {
    if (stop.signal.aborted) return;
    // Of what nobody foresaw, the stack is needed.
    if (!(error instanceof StartFailure)) terminal.warn(inspect(error));
    throw error;
  } finally {
    await demo?.stop();
    await mesh?.stop();
  }
}

/** Builds what is missing, and returns the folder of the services' bundles. */
async function build(
  { without }: LauncherOptions,
  children: ChildRegistry,
  signal: AbortSignal,
): Promise<string | null> {
  const options = { repository, children, terminal };
  const [bundles] = await Promise.all([
    bundleServices(options, signal),
    without.has("gateway") ? undefined : buildDashboard(options, signal),
  ]);
  return bundles;
}

async function masterKeyOf({ dataDir }: MeshSettings): Promise<string | null> {
  const text = await readFile(resolve(dataDir, "master-key"), "utf8").catch(() => "");
  return text.trim() || null;
}

async function demonstrate(children: ChildRegistry, { dataDir }: MeshSettings): Promise<Demo | null> {
  try {
    const demo = await startDemo(children, repository, dataDir);
    terminal.log(`Simulated devices: ${demo.devices.join(", ")}.`);
    return demo;
  } catch (error) {
    terminal.warn(`The simulated devices could not start: ${messageOf(error)}.`);
    return null;
  }
}
