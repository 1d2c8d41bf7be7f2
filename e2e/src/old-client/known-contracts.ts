import { type ContractSurface, surfaceOf } from "@devmesh/contract-check/surface";
import { readReleasedSurfaces } from "@devmesh/contract-check/surface-files";
import { mesh } from "@devmesh/contracts/mesh";
import type { ServiceDeclaration } from "@devmesh/contracts/topology";
import { type Recording, readRecording } from "./recording.ts";

/** What an old client of a service knows, and what it once said. */
export interface KnownContract {
  readonly service: string;
  readonly version: number;
  /** The released surface, and of what was added since then the surface of now. */
  readonly surface: ContractSurface;
  readonly recording: Recording;
}

/** The contracts of all services that answer or take anything, in the version they have now. */
export async function knownContracts(root: string): Promise<KnownContract[]> {
  const known: KnownContract[] = [];
  for (const [service, declaration] of Object.entries<ServiceDeclaration>(mesh)) {
    const now = surfaceOf(service, declaration);
    if (now === null) continue;
    const { version } = now;
    const released = (await readReleasedSurfaces(root, service)).find((one) => one.version === version);
    const surface: ContractSurface = {
      ...now,
      methods: { ...now.methods, ...released?.methods },
      events: { ...now.events, ...released?.events },
      consumes: { ...now.consumes, ...released?.consumes },
    };
    known.push({ service, version, surface, recording: await readRecording(root, service, version) });
  }
  return known;
}
