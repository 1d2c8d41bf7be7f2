import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import type { ServiceDeclaration } from "@devmesh/contracts/topology";
import { systemErrorCode } from "@devmesh/launcher/process/errors";
import { ContractSurface, surfaceOf } from "./surface.ts";
import { incompatibilities } from "./surface-compatibility.ts";

/** The surface files: texts by path in the repository, and what prevents writing them. */
export interface SurfacePlan {
  readonly documents: Readonly<Record<string, string>>;
  /** A sentence each; a service with problems keeps its files. */
  readonly problems: readonly string[];
}

/** Path of the present surface of a service. */
export function currentSurfacePath(service: string): string {
  return `services/${service}/contract/surface.json`;
}

/** Path of the released surface of a version. */
export function releasedSurfacePath(service: string, version: number): string {
  return `services/${service}/contract/released/v${version}.json`;
}

/**
 * Compares the contracts with the released surfaces in `root`. A new version is released at once; later only `release`
 * moves it, and never over an incompatible change. A version with a present surface must have a released one, so that
 * deleting that hides nothing.
 */
export async function planSurfaces(
  root: string,
  services: Readonly<Record<string, ServiceDeclaration>>,
  release: boolean,
): Promise<SurfacePlan> {
  const documents: Record<string, string> = {};
  const problems: string[] = [];
  for (const service of new Set([...Object.keys(services), ...(await servicesIn(root))])) {
    const declaration = services[service];
    const released = await readReleasedSurfaces(root, service);
    const surface = declaration === undefined ? null : surfaceOf(service, declaration);
    const current = surface ?? emptied(service, released);
    if (current === null) continue;
    const broken = released.flatMap((earlier) =>
      incompatibilities(earlier, current).map((what) => `${service} v${earlier.version}: ${what}`),
    );
    problems.push(...broken);
    if (broken.length > 0) continue;
    const isReleased = released.some(({ version }) => version === current.version);
    if (!isReleased && (await committedVersion(root, service)) === current.version) {
      problems.push(
        `${service} v${current.version}: ${releasedSurfacePath(service, current.version)} is gone: take it back from version control`,
      );
      continue;
    }
    const text = `${JSON.stringify(current, null, 2)}\n`;
    documents[currentSurfacePath(service)] = text;
    if (release || !isReleased) {
      documents[releasedSurfacePath(service, current.version)] = text;
    }
  }
  return { documents, problems };
}

/** Released surfaces of a service, oldest version first. Rejects with a `TypeError` for an unreadable one. */
export async function readReleasedSurfaces(root: string, service: string): Promise<ContractSurface[]> {
  const folder = join(root, "services", service, "contract", "released");
  const surfaces: ContractSurface[] = [];
  for (const file of await entriesOf(folder)) surfaces.push(await readSurface(join(folder, file)));
  return surfaces.sort((one, other) => one.version - other.version);
}

/** The version of the present surface; null without a readable one. */
async function committedVersion(root: string, service: string): Promise<number | null> {
  const file = join(root, currentSurfacePath(service));
  return await readSurface(file).then(
    ({ version }) => version,
    () => null,
  );
}

async function servicesIn(root: string): Promise<string[]> {
  return await entriesOf(join(root, "services"));
}

async function entriesOf(folder: string): Promise<string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    if (systemErrorCode(error) === "ENOENT") return [];
    throw error;
  }
}

async function readSurface(path: string): Promise<ContractSurface> {
  const text = await readFile(path, "utf8");
  try {
    return ContractSurface.parse(JSON.parse(text));
  } catch (cause) {
    throw new TypeError(`${path} cannot be compared with`, { cause });
  }
}

/** The empty surface of a service that is no longer on the bus. */
function emptied(service: string, released: readonly ContractSurface[]): ContractSurface | null {
  const last = released.at(-1);
  if (last === undefined) return null;
  return { service, version: last.version, methods: {}, events: {}, produces: {}, consumes: {} };
}
