import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { eventually } from "@devmesh/testkit/eventually";
import { expect, test } from "@jest/globals";
import { followRefusals } from "../src/fleet/refusals.ts";
import { noTotals, totalsLine } from "../src/fleet/totals.ts";

test("refused devices of the fleet are counted by reason, over a stream that is cut", async () => {
  const frame = (id: string, name: string, data: object) =>
    `id: 1\ndata: ${JSON.stringify({ seq: 1, id, name, data, timestamp: "2026-01-31T12:00:00.000Z" })}\n\n`;
  const streams = [
    frame("fleet-0001", "login_refused", { reason: "wrong_password" }) +
      frame("other-1", "throttled", { why: "bytes" }),
    frame("fleet-0002", "throttled", { why: "messages", refused_ms: 10_000 }) +
      frame("fleet-0002", "offline", {}) +
      frame("fleet-0001", "login_refused", { reason: "wrong_password" }),
  ];
  const keys: (string | undefined)[] = [];
  const server = createServer((request, response) => {
    keys.push(request.headers.authorization);
    response.writeHead(200, { "Content-Type": "text/event-stream" });
    response.end(streams.shift());
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const stopping = new AbortController();
  const mesh = { url: `http://127.0.0.1:${port}`, mqttUrl: "", mqttTlsCert: undefined, masterKey: "mk_x" };
  const { counts, lastOf } = followRefusals(mesh, "fleet", stopping.signal);
  await eventually(() => lastOf("fleet-0002") === "too many messages" && counts.get("wrong_password") === 2);
  expect(counts.size).toBe(2);
  expect(keys[0]).toBe("Bearer mk_x");
  stopping.abort();
  server.closeAllConnections();
  server.close();

  const status = { connected: 1, wanted: 2, faults: false, refusals: counts };
  expect(totalsLine(noTotals, status)).toBe(
    "1 of 2 connected, 0 records, 0 calls, 0 desired changes; refused: 2 wrong_password, 1 too many messages",
  );
});
