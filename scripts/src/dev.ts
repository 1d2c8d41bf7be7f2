import { spawn } from "node:child_process";
import { constants } from "node:os";
import { relative, resolve } from "node:path";
import type { ServiceName } from "@devmesh/contracts/mesh";
import { isServiceName } from "./launcher-arguments.ts";
import { dataFolder } from "./mesh/data-folder.ts";
import { readInstallation } from "./mesh/installation.ts";
import { readRunningMesh } from "./mesh/mesh-file.ts";
import { serviceEnvironment, storeOwners } from "./mesh/service-environment.ts";
import { serviceEntry } from "./mesh/service-process.ts";
import { meshSettings } from "./mesh/settings.ts";
import { StartFailure } from "./process/running-process.ts";

const repository = resolve(import.meta.dirname, "../..");

// As for the services that the launcher starts: what they write is their owner's alone.
process.umask(0o077);

try {
  const service = serviceOfThisFolder();
  const env = await environmentFor(service);
  const child = spawn(
    process.execPath,
    ["--watch", "--disable-warning=ExperimentalWarning", serviceEntry(service)],
    {
      cwd: repository,
      env,
      stdio: "inherit",
    },
  );
  // The terminal sends Ctrl-C to the service too; this process waits for its end.
  process.on("SIGINT", () => {});
  for (const signal of ["SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill("SIGTERM"));
  child.once("exit", (code, signal) => process.exit(signal ? 128 + constants.signals[signal] : (code ?? 1)));
} catch (error) {
  if (!(error instanceof StartFailure)) throw error;
  process.stderr.write(`${error.message}\n`);
  process.exit(1);
}

/** `npm run dev -w services/NAME` runs in the folder of the service. */
function serviceOfThisFolder(): ServiceName {
  const [folder, name, ...rest] = relative(repository, process.cwd()).split(/[\\/]/);
  if (folder === "services" && name && rest.length === 0 && isServiceName(name)) return name;
  throw new StartFailure("Run it for one service: npm run dev -w services/NAME");
}

/** The settings and credentials that the launcher would give the service. */
async function environmentFor(service: ServiceName): Promise<NodeJS.ProcessEnv> {
  const ownDataDir = process.env.DATA_DIR || resolve(repository, ".data");
  const folder = dataFolder(resolve(repository, ownDataDir));
  const mesh = await readRunningMesh(folder);
  const installation = await readInstallation(folder.installation);
  if (!installation) throw new StartFailure(`${folder.installation} is missing; start the mesh anew.`);
  const settings = meshSettings({
    HOST: mesh.settings.host,
    PORT: String(mesh.settings.port),
    MQTT_PORT: String(mesh.settings.mqtt_port),
    PUBLIC_URL: mesh.settings.public_url,
    ...process.env,
    DATA_DIR: folder.path,
  });
  if (mesh.services[service]) refuseSecond(service, settings.storeUrl, settings.port === mesh.settings.port);
  return serviceEnvironment(service, {
    settings,
    folder,
    installation,
    natsUrl: mesh.nats_url,
    mqttUrl: mesh.mqtt_url,
    mqttTlsCert: mesh.mqtt_tls_cert ?? undefined,
    inherited: process.env,
  });
}

/** Some services cannot run twice beside each other: an SQLite file serves one process, and a port too. */
function refuseSecond(service: ServiceName, storeUrl: string | undefined, samePort: boolean): void {
  const instead = `start the mesh with npm start -- --without ${service}`;
  if (storeOwners.has(service) && (storeUrl === undefined || storeUrl.startsWith("sqlite:"))) {
    throw new StartFailure(
      `The mesh runs ${service} already, and an SQLite file serves one process: ${instead}.`,
    );
  }
  if (service === "gateway" && samePort) {
    throw new StartFailure(`The mesh runs gateway on this port already: ${instead}, or set PORT.`);
  }
}
