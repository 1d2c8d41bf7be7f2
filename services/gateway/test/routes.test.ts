import { secretsInText } from "@devmesh/contracts/model/api-key";
import { ChannelInput, ChannelPatch, RuleInput } from "@devmesh/contracts/model/rule";
import { SilenceInput } from "@devmesh/contracts/model/silence";
import { WebhookInput } from "@devmesh/contracts/model/webhook";
import { api } from "@devmesh/contracts/rest/api";
import { Problem } from "@devmesh/contracts/rest/problem";
import type { RouteDeclaration } from "@devmesh/contracts/rest/route";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "@jest/globals";
import { z } from "zod";
import { content, downloadTicket, secrets } from "./fakes.ts";
import { type Fixture, startFixture } from "./gateway-fixture.ts";

let mesh: Fixture;
beforeAll(async () => {
  mesh = await startFixture();
});
afterEach(() => mesh.fakes.reset());
afterAll(async () => mesh[Symbol.asyncDispose]());

const values: Readonly<Record<string, string>> = {
  id: "pump",
  func: "Allowed",
  name: "known",
  ticket: downloadTicket,
  dead: "d1",
};
const bodies: Readonly<Record<string, unknown>> = {
  updateCustomer: { meta: {} },
  createView: { name: "Silent pumps", query: "where=silent%3A24h" },
  createBoard: { name: "Cold store", panels: [] },
  patchBoard: { name: "Cold stores", revision: 2 },
  cancelExecution: { state: "cancelled" },
  createFirmware: { name: "pump", version: "1.4.0", size: 3, sha256: "0".repeat(64) },
  createJob: { target: { where: {} }, action: { kind: "rpc", func: "Allowed" } },
  changeJob: { state: "paused" },
  createChannel: ChannelInput.meta()?.example,
  changeChannel: ChannelPatch.meta()?.example,
  createRule: RuleInput.meta()?.example,
  createSilence: SilenceInput.meta()?.example,
  tryRule: RuleInput.meta()?.example,
  createWebhook: WebhookInput.meta()?.example,
};
/** Firmware that takes a content. */
const withoutContent = "/api/v2/firmware/empty/content";
const queries: Readonly<Record<string, string>> = {
  registerCustomer: "?email=ann@example.com",
  confirmCustomer: "?token=good",
  readSeries: "?device_id=pump&topic=temp",
};

const routes = Object.entries<RouteDeclaration>(api).flatMap(([operation, route]) =>
  [route.path, ...(route.aliases ?? [])].map((path) => ({ operation, route, path })),
);
const kinds = Object.keys(secrets) as (keyof typeof secrets)[];

describe.each(routes)("$route.method $path", ({ operation, route, path }) => {
  const target = route.upload
    ? withoutContent
    : path.replaceAll(/:([a-z]+)/g, (_, name: string) => values[name] ?? "") + (queries[operation] ?? "");
  const ask = (key: keyof typeof secrets | null) =>
    mesh.fetch(target, {
      method: route.method.toUpperCase(),
      key,
      ...(route.upload && { body: content, headers: { "content-type": route.upload.type } }),
      ...(route.body && !route.body.optional && { json: bodies[operation] ?? {} }),
    });

  test.each(kinds)("with a %s answers as declared", async (kind) => {
    const answer = await ask(kind);
    if (route.stream === true && route.auth?.includes(kind)) {
      expect(Problem.parse(await answer.json())).toMatchObject({ status: 406, reason: "not_acceptable" });
      return;
    }
    if (route.auth === null || route.auth.includes(kind)) {
      expect(Object.keys(route.answers)).toContain(String(answer.status));
      const declared = route.answers[answer.status];
      const text = await answer.text();
      if (declared?.json !== undefined) declared.json.parse(JSON.parse(text));
      if (kind === "session") expect(text).not.toMatch(secretsInText);
      return;
    }
    expect(answer.status).toBe(403);
    const problem = Problem.parse(await answer.json());
    expect(problem.reason).toBe("wrong_key_kind");
    expect(problem.detail).toMatch(/^This route needs a .*key/);
  });

  test("without a key answers only where none is needed", async () => {
    const answer = await ask(null);
    expect(answer.status).toBe(route.auth === null ? Number(Object.keys(route.answers)[0]) : 401);
    expect(answer.headers.get("www-authenticate")).toBe(route.auth === null ? null : "Bearer");
  });

  test("refuses other methods and names those it has", async () => {
    const answer = await mesh.fetch(target, { method: "PUT" });
    expect(answer.status).toBe(405);
    expect(answer.headers.get("allow")?.split(", ")).toContain(route.method.toUpperCase());
    expect(Problem.parse(await answer.json()).reason).toBe("method_not_allowed");
  });

  if (route.method === "get") {
    test("answers HEAD as it answers GET, without a body", async () => {
      const key = route.auth?.[0] ?? null;
      const [head, get] = [await mesh.fetch(target, { method: "HEAD", key }), await ask(key)];
      expect(head.status).toBe(get.status);
      expect(await head.text()).toBe("");
      expect(head.headers.get("content-type")).toBe(get.headers.get("content-type"));
      await get.body?.cancel();
    });
  }
});

/** Whether a body can have a condition over devices. */
function takesCondition({ body }: RouteDeclaration): boolean {
  if (body === undefined) return false;
  return JSON.stringify(z.toJSONSchema(body.schema, { io: "input", unrepresentable: "any" })).includes(
    '"DeviceCondition',
  );
}

describe("a condition of which a member is given twice is refused", () => {
  const withCondition = routes.filter(({ route }) => takesCondition(route));
  expect(withCondition.length).toBeGreaterThan(6);

  test.each(withCondition)("by $route.method $path", async ({ path }) => {
    const answer = await mesh.fetch(path.replace(":id", "pump"), {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: '{"a":1,"where":[{"labels":{"all":["a"],"none":[],"all":["b"]}}]}',
    });
    expect(Problem.parse(await answer.json())).toMatchObject({
      ...{ status: 400, reason: "invalid_request" },
      errors: [{ pointer: "/where/0/labels/all", detail: "must be given once" }],
    });
  });
});
