import { execFile } from "node:child_process";
import { once } from "node:events";
import { promisify } from "node:util";
import { describe, expect, test } from "@jest/globals";
import { Unreachable } from "../src/api/api-problem.ts";
import { curlCommand } from "../src/api-reference/curl-command.ts";
import type { Operation } from "../src/api-reference/openapi-document.ts";
import { readableBody, tellingHeaders } from "../src/api-reference/readable-answer.ts";
import { maxBodyLength, sendRequest, type TriedAnswer } from "../src/api-reference/send-request.ts";
import { destroys, mediaTypes, missingParameters, requestOf } from "../src/api-reference/tried-request.ts";
import { bodyOf, sendJson, startHttpServer } from "./http-server.ts";

const key = `mk_${"a".repeat(32)}`;

const parameter = (place: "path" | "query", name: string, required = false) => ({
  in: place,
  name,
  required,
  schema: { type: "string" },
});

const operation: Operation = {
  operationId: "callFunction",
  method: "POST",
  path: "/api/v2/devices/{id}/rpc/{func}",
  tags: ["RPC"],
  summary: "Call a function",
  description: "",
  security: [{ bearer: [] }],
  parameters: [
    parameter("path", "id", true),
    parameter("path", "func", true),
    parameter("query", "timeout"),
    parameter("query", "note"),
  ],
  requestBody: { required: false, content: { "application/json": { schema: {} } } },
  responses: {
    200: {
      description: "",
      headers: {},
      content: { "application/json": { schema: {} }, "text/csv": { schema: {} } },
    },
    404: { description: "", headers: {}, content: { "application/problem+json": { schema: {} } } },
  },
};

const filled = {
  values: { "path id": "a b", "path func": "Sys/Get", "query timeout": "", "query note": "it's 1 & 2" },
  accept: "text/csv",
  body: '{"a": "it\'s $HOME"}',
};

describe("a request that is tried", () => {
  test("has its parameters where they belong, and what was left empty nowhere", () => {
    expect(requestOf(operation, filled)).toEqual({
      method: "POST",
      address: "/api/v2/devices/a%20b/rpc/Sys%2FGet?note=it%27s+1+%26+2",
      headers: { Accept: "text/csv", "Content-Type": "application/json" },
      body: filled.body,
      needsKey: true,
    });
    expect(
      requestOf(operation, { values: filled.values, accept: "application/json", body: " " }),
    ).toMatchObject({ headers: {}, body: null });
    expect(requestOf({ ...operation, security: [] }, filled).needsKey).toBe(false);
  });

  test("lacks what must be given", () => {
    const names = (values: Readonly<Record<string, string>>) =>
      missingParameters(operation, { ...filled, values }).map(({ name }) => name);
    expect(names({ "path id": "a" })).toEqual(["func"]);
    expect(names(filled.values)).toEqual([]);
  });

  test("can ask for what a success comes as, not for problems", () => {
    expect(mediaTypes(operation)).toEqual(["application/json", "text/csv"]);
  });

  test("is asked for again where it destroys something", () => {
    expect(destroys(operation)).toBe(false);
    expect(destroys({ ...operation, method: "DELETE" })).toBe(true);
    expect(destroys({ ...operation, operationId: "rotateToken" })).toBe(true);
  });

  test("is a command that a shell reads as it was meant, with the key from the environment", async () => {
    const command = curlCommand(requestOf(operation, filled), "http://127.0.0.1:8080");
    expect(command).not.toContain("mk_");
    const script = `curl() { printf '%s\\n' "$@"; }\n${command}`;
    const { stdout } = await promisify(execFile)("sh", ["-c", script], { env: { DEVMESH_KEY: key } });
    expect(stdout.trimEnd().split("\n")).toEqual([
      "-sS",
      "-X",
      "POST",
      "http://127.0.0.1:8080/api/v2/devices/a%20b/rpc/Sys%2FGet?note=it%27s+1+%26+2",
      "-H",
      `Authorization: Bearer ${key}`,
      "-H",
      "Accept: text/csv",
      "-H",
      "Content-Type: application/json",
      "--data-raw",
      filled.body,
    ]);
    const open = curlCommand({ ...requestOf(operation, filled), needsKey: false }, "");
    expect(open).not.toContain("Authorization");
  });
});

/** Sends the request to a server and gathers what is told of the answer. */
async function send(
  answer: Parameters<typeof startHttpServer>[0],
  request = requestOf(operation, filled),
  onAnswer: (told: TriedAnswer, stop: () => void) => void = () => {},
) {
  await using server = await startHttpServer(answer);
  const ending = new AbortController();
  const told: TriedAnswer[] = [];
  await sendRequest(request, {
    api: { origin: server.origin, key },
    onAnswer(each) {
      told.push(each);
      onAnswer(each, () => ending.abort());
    },
    signal: ending.signal,
  });
  const last = told.at(-1);
  if (last === undefined) throw new Error("nothing was told");
  return { told, last };
}

describe("the answer to a request that is tried", () => {
  test("is told whatever its status; the key goes in a header, and only where one is needed", async () => {
    const seen: unknown[] = [];
    const server: Parameters<typeof startHttpServer>[0] = async (request, response) => {
      const { method, url, headers } = request;
      seen.push([method, url, headers.authorization, headers["content-type"], await bodyOf(request)]);
      sendJson(response, 404, { status: 404 }, { "X-Request-Id": "r-1" });
    };
    const request = requestOf(operation, filled);
    const { last } = await send(server, request);
    await send(server, { ...request, needsKey: false, body: null, headers: {} });
    expect(seen).toEqual([
      ["POST", request.address, `Bearer ${key}`, "application/json", filled.body],
      ["POST", request.address, undefined, undefined, ""],
    ]);
    expect(last).toMatchObject({ status: 404, statusText: "Not Found", ended: true, cut: false });
    expect(last.tookMs).toBeGreaterThan(0);
    expect(tellingHeaders(last.headers)).toEqual([
      { name: "Content-Type", value: "application/json" },
      { name: "X-Request-Id", value: "r-1" },
    ]);
    expect(readableBody(last)).toBe('{\n  "status": 404\n}');
  });

  test("is cut where it is too large to be shown, and the rest is not read", async () => {
    let closed: Promise<unknown> = Promise.resolve();
    const { last } = await send((_request, response) => {
      closed = once(response, "close");
      response.writeHead(200, { "Content-Type": "application/json" });
      response.write(`["${"x".repeat(maxBodyLength)}`);
    });
    await closed;
    expect(last).toMatchObject({ cut: true, ended: true });
    expect(last.body).toHaveLength(maxBodyLength);
    expect(readableBody(last)).toBe(last.body);
  });

  test("is told as it comes, until it is stopped", async () => {
    const { told, last } = await send(
      (_request, response) => {
        response.writeHead(200, { "Content-Type": "text/event-stream" });
        response.write("data: 1\n\n");
      },
      undefined,
      ({ body }, stop) => {
        if (body !== "") stop();
      },
    );
    expect(told[0]).toMatchObject({ status: 200, body: "", ended: false });
    expect(last).toMatchObject({ body: "data: 1\n\n", ended: true, cut: false });
  });

  test("is missing where no server is", async () => {
    await using server = await startHttpServer(() => {});
    await server[Symbol.asyncDispose]();
    const request = requestOf(operation, filled);
    const signal = AbortSignal.timeout(10_000);
    const sent = sendRequest(request, { api: { origin: server.origin, key }, onAnswer: () => {}, signal });
    await expect(sent).rejects.toBeInstanceOf(Unreachable);
  });

  test("is readable as it came where it is no JSON", () => {
    const answer = { status: 200, statusText: "OK", cut: false, ended: true };
    const json = new Headers({ "Content-Type": "application/problem+json; charset=utf-8" });
    expect(readableBody({ ...answer, headers: json, body: "{" })).toBe("{");
    expect(readableBody({ ...answer, headers: json, body: '{"a":1}' })).toBe('{\n  "a": 1\n}');
    const csv = new Headers({ "Content-Type": "text/csv" });
    expect(readableBody({ ...answer, headers: csv, body: "[1]" })).toBe("[1]");
  });
});
