import { allTopics } from "@devmesh/contracts/mqtt";
import { api } from "@devmesh/contracts/rest/api";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "@jest/globals";
import { Validator } from "@seriousme/openapi-schema-validator";
import { errorReference } from "../src/reference/error-reference.ts";
import { type Fixture, startFixture } from "./gateway-fixture.ts";

let mesh: Fixture;
beforeAll(async () => {
  mesh = await startFixture({ env: { PUBLIC_URL: "https://mesh.example.com" } });
});
afterEach(() => mesh.fakes.reset());
afterAll(async () => mesh[Symbol.asyncDispose]());

const read = (path: string, headers: Record<string, string> = {}) => mesh.fetch(path, { key: null, headers });
const browser = { accept: "text/html,application/xhtml+xml,*/*;q=0.8" };

describe("the confirmation page", () => {
  test("shows the address, escaped, runs nothing and leaks nothing", async () => {
    const answer = await read("/confirm?token=good", browser);
    expect(answer.status).toBe(200);
    expect(answer.headers.get("content-type")).toBe("text/html; charset=utf-8");
    const policy = answer.headers.get("content-security-policy") ?? "";
    expect(policy).toContain("default-src 'none'");
    expect(policy).not.toMatch(/script-src|unsafe/);
    expect(answer.headers.get("referrer-policy")).toBe("no-referrer");
    expect(answer.headers.get("x-robots-tag")).toBe("noindex");
    const html = await answer.text();
    expect(html).toContain("ann&lt;b&gt;@example.com");
    expect(html).not.toContain("<script");
  });

  test("shows an error as a page to a browser and as a problem to anything else", async () => {
    const page = await read("/confirm?token=bad", browser);
    expect(page.status).toBe(404);
    expect(page.headers.get("content-type")).toContain("text/html");
    expect(await page.text()).toContain("The confirmation link is unknown or has expired.");
    const problem = await read("/confirm?token=bad");
    expect(problem.headers.get("content-type")).toBe("application/problem+json");
    expect((await read("/confirm", browser)).status).toBe(400);
  });
});

describe("the page of a registration", () => {
  test("says what keeps a mail back, the same for each address, and repeats nothing of the request", async () => {
    const pages = await Promise.all(
      ["ann", "<b>bob"].map((name) =>
        read(`/newcustomer?email=${encodeURIComponent(name)}@example.com`, browser),
      ),
    );
    expect(pages.map(({ status }) => status)).toEqual([202, 400]);
    const [page] = pages;
    expect(page?.headers.get("content-type")).toBe("text/html; charset=utf-8");
    expect(page?.headers.get("content-security-policy")).toContain("default-src 'none'");
    const html = (await page?.text()) ?? "";
    expect(html).toContain("only a few invitations an hour");
    expect(html).not.toContain("ann");
    const json = await read("/newcustomer?email=ann@example.com");
    expect(await json.json()).toEqual({ status: "invited" });
  });

  test("says that the caller's network has used up its invitations, and until when", async () => {
    mesh.fakes.keys.invite = async (_, context) => context.fail("too_many_invitations");
    const page = await read("/newcustomer?email=ann@example.com", browser);
    expect([page.status, page.headers.get("retry-after")]).toEqual([429, "3600"]);
    expect(page.headers.get("content-type")).toContain("text/html");
    expect(await page.text()).toContain("try again in an hour");
    const problem = await read("/newcustomer?email=ann@example.com");
    expect(problem.status).toBe(429);
    expect(await problem.json()).toMatchObject({ reason: "too_many_invitations" });
  });
});

describe("the API reference", () => {
  test("is named at /docs, where / leads, by its documents while there is no build of it", async () => {
    const root = await read("/");
    expect(root.status).toBe(302);
    expect(root.headers.get("location")).toBe("/docs");
    const answer = await read("/docs");
    expect(answer.status).toBe(200);
    expect(answer.headers.get("content-security-policy")).toContain("default-src 'none'");
    const paths = [...(await answer.text()).matchAll(/href="([^"]+)"/g)].map(([, path]) => path ?? "");
    expect(paths).toEqual(["/api/v2/openapi.json", "/api/v2/asyncapi.json", "/docs/errors"]);
    for (const path of paths) expect((await read(path)).status).toBe(200);
  });

  test("has nothing else below its path", async () => {
    for (const path of ["/docs/package.json", "/docs/index.html", "/docs/..%2fpackage.json"]) {
      expect((await read(path)).status).toBe(404);
    }
  });

  test("explains each reason where the type of its problem points", async () => {
    const html = await (await read("/docs/errors")).text();
    for (const { reason } of errorReference()) expect(html).toContain(`id="${reason}"`);
  });

  test("is drawn from a valid OpenAPI 3.1 document that names where it is served", async () => {
    const document = (await (await read("/api/v2/openapi.json")).json()) as Record<string, unknown>;
    expect(document.servers).toEqual([{ url: "https://mesh.example.com" }]);
    const { valid, errors } = await new Validator().validate(structuredClone(document));
    expect(errors).toBeUndefined();
    expect(valid).toBe(true);
    const paths = document.paths as Record<string, Record<string, { operationId: string }>>;
    const described = Object.values(paths).flatMap((methods) =>
      Object.values(methods).map((one) => one.operationId),
    );
    expect(described.sort()).toEqual(Object.keys(api).sort());
  });

  test.each(["/api/v2/openapi.json", "/api/v2/asyncapi.json"])(
    "is drawn from %s, which is compressed for clients that accept it",
    async (path) => {
      const plain = await read(path, { "Accept-Encoding": "identity" });
      const compressed = await read(path, { "Accept-Encoding": "gzip" });
      expect(plain.headers.get("content-encoding")).toBe(null);
      expect(compressed.headers.get("content-encoding")).toBe("gzip");
      expect(compressed.headers.get("vary")).toContain("Accept-Encoding");
      const bytes = (answer: Response) => Number(answer.headers.get("content-length"));
      expect(bytes(compressed)).toBeLessThan(bytes(plain) / 3);
      expect(await compressed.json()).toEqual(await plain.json());
    },
  );

  test("names an AsyncAPI document, which says where devices reach the broker", async () => {
    const { info } = (await (await read("/api/v2/openapi.json")).json()) as { info: { description: string } };
    const [, path = ""] = /\((\S+asyncapi\.json)\)/.exec(info.description) ?? [];
    const { asyncapi, servers, channels } = (await (await read(path)).json()) as {
      asyncapi: string;
      servers: Record<string, unknown>;
      channels: object;
    };
    expect(asyncapi).toBe("3.0.0");
    expect(servers.broker).toMatchObject({
      host: "{host}:1883",
      protocol: "mqtt",
      variables: { host: { default: "mesh.example.com" } },
    });
    expect(Object.keys(channels)).toEqual([...allTopics.map(({ name }) => name), "webhook"]);
  });
});
