import { mesh } from "@devmesh/contracts/mesh";
import { dataFolder } from "./mesh/data-folder.ts";
import { readMeshFile } from "./mesh/mesh-file.ts";
import { meshSettings } from "./mesh/settings.ts";

/*
 * The health check of the single image: names the services of the mesh of DATA_DIR that are not ready, and exits with
 * 1 when there are any.
 */
const running = await readMeshFile(dataFolder(meshSettings(process.env).dataDir).meshFile);

async function isReady(service: string): Promise<boolean> {
  const ops = running?.services[service]?.ops;
  return ops != null && (await fetch(`${ops}/readyz`).catch(() => null))?.ok === true;
}

const names = Object.keys(mesh);
const ready = await Promise.all(names.map(isReady));
const waiting = names.filter((_, at) => !ready[at]);
if (waiting.length > 0) console.log(`not ready: ${waiting.join(", ")}`);
process.exit(waiting.length === 0 ? 0 : 1);
