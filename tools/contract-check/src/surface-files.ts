import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import type { ServiceDeclaration } from "@devmesh/contracts/topology";
import { systemErrorCode } from "@devmesh/supervisor/process/errors";
import { ContractSurface, surfaceOf } from "./surface.ts";
import { incompatibilities } from "./surface-compatibility.ts";

/** The released surfaces to write: texts by path in the repository, and what prevents writing them. */
export interface SurfacePlan {
  readonly documents: Readonly<Record<string, string>>;
  /** A sentence each; a service with problems keeps its files. */
  readonly problems: readonly string[];
}

/** Longest line of a released surface, where it can be broken. */
const LINE = 120;

/** Path of the released surface of a version. */
export function releasedSurfacePath(service: string, version: number): string {
  return `services/${service}/contract/released/v${version}.json`;
}

/**
 * Compares the contracts with the released surfaces in `root`. A new version is released at once; later only `release`
 * moves it, and never over an incompatible change.
 */
export async function planSurfaces(
  root: string,
  services: Readonly<Record<string, ServiceDeclaration>>,
  release: boolean,
): Promise<SurfacePlan> {
  const documents: Record<string, string> = {};
  const problems: string[] = [];
  for (const service of new Set([...Object.keys(services), ...(await entriesOf(join(root, "services")))])) {
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
    if (release || !isReleased)
      documents[releasedSurfacePath(service, current.version)] = `${jsonText(current)}\n`;
  }
  return { documents, problems };
}

/** Released surfaces of a service, oldest version first. Rejects with a `TypeError` for an unreadable one. */
export async function readReleasedSurfaces(root: string, service: string): Promise<ContractSurface[]> {
  const folder = join(root, "services", service, "contract", "released");
  const surfaces: ContractSurface[] = [];
  for (const file of await entriesOf(folder)) {
    const path = join(folder, file);
    try {
      surfaces.push(ContractSurface.parse(JSON.parse(await readFile(path, "utf8"))));
    } catch (cause) {
      throw new TypeError(`${path} cannot be compared with`, { cause });
    }
  }
  return surfaces.sort((one, other) => one.version - other.version);
}

async function entriesOf(folder: string): Promise<string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    if (systemErrorCode(error) === "ENOENT") return [];
    throw error;
  }
}

/** JSON with each object and array on one line that fits there. */
function jsonText(value: unknown, indent = ""): string {
  const line = JSON.stringify(value);
  if (indent.length + line.length <= LINE || typeof value !== "object" || value === null) return line;
  const inner = `${indent}  `;
  const [open, close] = Array.isArray(value) ? "[]" : "{}";
  const parts = Object.entries(value)
    .filter(([, member]) => member !== undefined)
    .map(([name, member]) => {
      const key = Array.isArray(value) ? "" : `${JSON.stringify(name)}: `;
      return `${inner}${key}${jsonText(member, inner)}`;
    });
  return `${open}\n${parts.join(",\n")}\n${indent}${close}`;
}

/** The empty surface of a service that is no longer on the bus. */
function emptied(service: string, released: readonly ContractSurface[]): ContractSurface | null {
  const last = released.at(-1);
  if (last === undefined) return null;
  return { service, version: last.version, methods: {}, events: {}, produces: {}, consumes: {} };
}
