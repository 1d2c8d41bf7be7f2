import { PINNED_VERSION } from "./supported-version.ts";

const platforms: Readonly<Record<string, string>> = { linux: "linux", darwin: "darwin" };
const architectures: Readonly<Record<string, string>> = { x64: "amd64", arm64: "arm64" };

/** One file of the pinned release of nats-server. */
export interface ReleaseArchive {
  /** Name of the archive, as it stands in the release's `SHA256SUMS`. */
  readonly name: string;
  /** Path of the server inside the archive. */
  readonly member: string;
}

/** The folder the release's files are downloaded from, unless `NATS_SERVER_DOWNLOAD_URL` names a mirror. */
export const RELEASE_URL = `https://github.com/nats-io/nats-server/releases/download/v${PINNED_VERSION}`;

/**
 * The archive for a platform and CPU as Node names them (`process.platform`, `process.arch`); null where none is
 * published that the mesh supports.
 */
export function releaseArchive(platform: string, architecture: string): ReleaseArchive | null {
  const os = platforms[platform];
  const cpu = architectures[architecture];
  if (!os || !cpu) return null;
  const folder = `nats-server-v${PINNED_VERSION}-${os}-${cpu}`;
  return { name: `${folder}.tar.gz`, member: `${folder}/nats-server` };
}
