/** A file server in a process: each request answers the file of its path in `FOLDER`, or one range of it. */
import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { basename, join } from "node:path";
import { pipeline } from "node:stream/promises";
import { reportReady } from "../child.ts";

const folder = process.env.FOLDER ?? ".";

const server = createServer(async (request, response) => {
  const path = join(folder, basename(request.url ?? ""));
  const { size } = await stat(path);
  const [, first = "", last = ""] = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? "") ?? [];
  const [start, end] = first === "" ? [0, size - 1] : [Number(first), Number(last)];
  response.writeHead(first === "" ? 200 : 206, { "Content-Length": end - start + 1 });
  await pipeline(createReadStream(path, { start, end }), response).catch(() => response.destroy());
});
server.listen(0, "127.0.0.1", () =>
  reportReady(`http://127.0.0.1:${(server.address() as AddressInfo).port}`),
);
