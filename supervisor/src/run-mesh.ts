import { readFile } from "node:fs/promises";
import { hostname } from "node:os";
import { resolve } from "node:path";
import { inspect } from "node:util";
import { type Demo, startDemo } from "./demo-process.ts";
import { proxyAdvice } from "./mesh/broker-addresses.ts";
import { type FindNatsServer, type Mesh, startMesh } from "./mesh/mesh.ts";
import { repository } from "./mesh/service-process.ts";
import { type MeshSettings, meshSettings } from "./mesh/settings.ts";
import type { MeshArguments } from "./mesh-arguments.ts";
import { type ChildRegistry, childRegistry } from "./process/child-registry.ts";
import type { Terminal } from "./process/command.ts";
import { messageOf, StartFailure } from "./process/errors.ts";
import { stopRequest } from "./process/stop-request.ts";
import { welcome } from "./welcome.ts";

/** How the programs of a mesh are found, and for which reader it prints. */
export interface RunOptions extends MeshArguments {
  readonly findNatsServer: FindNatsServer;
  /** Returns the folder of the services' bundles; null: they run from their sources. */
  readonly findBundles: (build: BuildOptions, signal: AbortSignal) => Promise<string | null>;
  /** Runs in a container: the output is a log, and other commands run there, too. */
  readonly container: boolean;
}

/** With what missing bundles may be built. */
export interface BuildOptions {
  readonly repository: string;
  readonly children: ChildRegistry;
  readonly terminal: Terminal;
}

const terminal: Terminal = console;
/** A stop that takes longer, in milliseconds, is explained. */
const quickStopMs = 1_500;

/**
 * Runs the mesh of this process's environment until a signal asks it to stop. Throws when it cannot start; nothing is
 * left running then.
 */
export async function runMesh(options: RunOptions): Promise<void> {
  // The mesh stays when nobody reads its output any more.
  for (const stream of [process.stdout, process.stderr]) stream.on("error", () => {});
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
    const bundles = await options.findBundles({ repository, children, terminal }, stop.signal);
    // Files of the mesh are private to their owner, and its parts inherit this; the dashboard's are not.
    process.umask(0o077);
    const { findNatsServer, without } = options;
    mesh = await startMesh(
      { settings, env: process.env, repository, bundles, findNatsServer, without, children, terminal },
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
