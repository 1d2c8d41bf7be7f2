import { once } from "node:events";
import type { ServerResponse } from "node:http";
import type { MeshState } from "@devmesh/contracts/model/mesh-state";
import { describe, expect, test } from "@jest/globals";
import { createApiClient } from "../src/api/api-client.ts";
import { retryMail } from "../src/features/mesh/dead-mail.tsx";
import { followMesh } from "../src/features/mesh/mesh-stream.ts";
import type { StreamState } from "../src/live/lasting-stream.ts";
import { sendJson, startHttpServer } from "./http-server.ts";

const key = `mk_${"a".repeat(32)}`;

const state = (dead_mail: number): MeshState => ({
  timestamp: "2026-01-31T12:00:00.000Z",
  services: [{ name: "gateway", replicas: [] }],
  queues: { data: 0, rpc_bridge: 0, jobs: 0, mail: 0, dead_mail },
});

const event = (data: unknown) => `data: ${JSON.stringify(data)}\n\n`;

/** Follows the mesh of a server whose connections `answer` serves, the first with 0, until `count` readings came. */
async function readings(count: number, answer: (connection: number, response: ServerResponse) => void) {
  let connections = 0;
  let closed: Promise<unknown> = Promise.resolve();
  await using server = await startHttpServer((request, response) => {
    expect(request.url).toBe("/api/v2/mesh");
    expect(request.headers.accept).toBe("text/event-stream");
    expect(request.headers.authorization).toBe(`Bearer ${key}`);
    closed = once(response, "close");
    answer(connections++, response);
  });
  const leaving = new AbortController();
  const read: (number | null)[] = [];
  const states: StreamState[] = [];
  await followMesh({
    api: createApiClient({ origin: server.origin, key }),
    onReading(reading) {
      read.push(reading === null ? null : reading.queues.dead_mail);
      if (read.length === count) leaving.abort();
    },
    onState: (each) => states.push(each),
    signal: leaving.signal,
    backOffMs: [1],
  });
  await closed;
  return { read, states };
}

const eventStream = (response: ServerResponse) =>
  response.writeHead(200, { "Content-Type": "text/event-stream" });

describe("the stream of the mesh", () => {
  test("tells each reading, and null where the server could not read, and ends when it is left", async () => {
    const { read, states } = await readings(3, (_connection, response) => {
      eventStream(response).write(`${event(state(1))}: the mesh cannot be read\n\n${event(state(2))}`);
    });
    expect(read).toEqual([1, null, 2]);
    expect(states).toEqual(["connecting", "live"]);
  });

  test("takes a reading without any service for one that could not be made", async () => {
    const { read } = await readings(2, (_connection, response) => {
      eventStream(response).write(event({ ...state(0), services: [] }) + event(state(1)));
    });
    expect(read).toEqual([null, 1]);
  });

  test("is found again when it is lost or refused", async () => {
    const { read, states } = await readings(2, (connection, response) => {
      if (connection === 0) eventStream(response).end(event(state(1)));
      else if (connection === 1) response.writeHead(503).end();
      else eventStream(response).write(event(state(2)));
    });
    expect(read).toEqual([1, 2]);
    expect(states).toEqual(["connecting", "live", "reconnecting", "unavailable", "live"]);
  });

  test("passes over what is no state of a mesh", async () => {
    const { read } = await readings(1, (_connection, response) => {
      eventStream(response).write(`data: no json\n\n${event({ services: 1 })}${event(state(5))}`);
    });
    expect(read).toEqual([5]);
  });
});

describe("mail that was given up", () => {
  const problem = (status: number, reason: string) => ({
    type: "about:blank",
    title: "No",
    status,
    reason,
    detail: reason,
    request_id: "r-1",
    error: { code: status, message: reason },
  });

  test("is queued again, each of it, although one fails, whose failure is told; what is gone is done", async () => {
    const asked: (string | undefined)[] = [];
    await using server = await startHttpServer((request, response) => {
      asked.push(`${request.method} ${request.url}`);
      if (request.url?.includes("gone")) return sendJson(response, 404, problem(404, "mail_not_found"));
      if (request.url?.includes("stuck")) return sendJson(response, 503, problem(503, "unavailable"));
      response.writeHead(204).end();
    });
    const api = createApiClient({ origin: server.origin, key });
    expect(await retryMail(api, ["one", "gone"])).toBe(2);
    await expect(retryMail(api, ["stuck", "two/2"])).rejects.toMatchObject({ status: 503 });
    expect(asked).toEqual([
      "POST /api/v2/mail/dead/one/retry",
      "POST /api/v2/mail/dead/gone/retry",
      "POST /api/v2/mail/dead/stuck/retry",
      "POST /api/v2/mail/dead/two%2F2/retry",
    ]);
  });
});
