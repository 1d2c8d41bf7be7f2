import { createHash } from "node:crypto";
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { gzipSync } from "node:zlib";
import { PINNED_VERSION } from "../../src/nats-server/supported-version.ts";

/** What a stand-in for the release's host does with a file. */
export type Served = Buffer | string | ((response: ServerResponse) => void);

/** A local HTTP server with the files of a release. */
export interface ReleaseServer extends AsyncDisposable {
  readonly url: string;
  /** Paths that were asked for, in order. */
  readonly requests: readonly string[];
}

/** Serves files by their name; what is not listed is 404. */
export async function releaseServer(files: Readonly<Record<string, Served>>): Promise<ReleaseServer> {
  const requests: string[] = [];
  const server = createServer((request, response) => {
    const name = request.url?.replace(/^\//, "") ?? "";
    requests.push(name);
    const served = files[name];
    if (served === undefined) response.writeHead(404).end("not found");
    else if (typeof served === "function") served(response);
    else response.end(served);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/`,
    requests,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** A shell script that answers `--version` like nats-server does. */
export function fakeServer(version: string = PINNED_VERSION): string {
  return `#!/bin/sh\necho "nats-server: v${version}"\n`;
}

/** A `.tar.gz` with one file in it, made by hand after POSIX ustar. */
export function tarGz(path: string, content: string): Buffer {
  const body = Buffer.from(content);
  const header = Buffer.alloc(512);
  header.write(path, 0);
  header.write("0000755\0", 100);
  header.write(`${body.length.toString(8).padStart(11, "0")}\0`, 124);
  header.write("ustar\0", 257);
  const padding = Buffer.alloc((512 - (body.length % 512)) % 512);
  return gzipSync(Buffer.concat([header, body, padding, Buffer.alloc(1_024)]));
}

/** A line of `SHA256SUMS`. */
export function checksumLine(name: string, content: Buffer): string {
  return `${createHash("sha256").update(content).digest("hex")}  ${name}\n`;
}
