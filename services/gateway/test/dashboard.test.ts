import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { request as httpRequest, type IncomingMessage } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { json as readJson } from "node:stream/consumers";
import { brotliCompressSync, gzipSync } from "node:zlib";
import { ManualClock } from "@devmesh/service-kit/testing/manual-clock";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { isOfThisMachine } from "../src/dashboard/key-place.ts";
import { type Fixture, startFixture } from "./gateway-fixture.ts";

const page = "<!doctype html><title>Devmesh</title>";
const reference = "<!doctype html><title>API</title>";
const script = `console.log(${JSON.stringify("x".repeat(2000))})`;

const keyFile = "/srv/mesh data/master-key";

let folder: string;
let mesh: Fixture;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "devmesh-gateway-"));
  const dist = join(folder, "dist");
  await mkdir(join(dist, "assets"), { recursive: true });
  await Promise.all([
    writeFile(join(folder, "secret.js"), "outside"),
    writeFile(join(dist, "index.html"), page),
    writeFile(join(dist, "docs.html"), reference),
    writeFile(join(dist, "docs.html.br"), brotliCompressSync(reference)),
    writeFile(join(dist, "icon.svg"), "<svg/>"),
    writeFile(join(dist, "notes.txt"), "not served"),
    writeFile(join(dist, "assets", "index-abc.js"), script),
    writeFile(join(dist, "assets", "index-abc.js.br"), brotliCompressSync(script)),
    writeFile(join(dist, "assets", "index-abc.js.gz"), gzipSync(script)),
  ]);
  mesh = await startFixture({ env: { WEB_DIR: dist, MASTER_KEY_FILE: keyFile } });
});
afterAll(async () => {
  await mesh[Symbol.asyncDispose]();
  await rm(folder, { recursive: true, force: true });
});

const read = (path: string, headers: Record<string, string> = {}, method = "GET") =>
  mesh.fetch(path, { key: null, headers, method });
const browser = { accept: "text/html,application/xhtml+xml,*/*;q=0.8" };

describe("the dashboard", () => {
  test("stands at / for anyone, never kept, under a policy that lets it load from its own origin alone", async () => {
    const answer = await read("/");
    expect(answer.status).toBe(200);
    expect(await answer.text()).toBe(page);
    expect(answer.headers.get("content-type")).toBe("text/html; charset=utf-8");
    expect(answer.headers.get("cache-control")).toBe("no-store");
    expect(answer.headers.get("x-request-id")).not.toBeNull();
    const policy = answer.headers.get("content-security-policy") ?? "";
    expect(policy).toContain("script-src 'self';");
    expect(policy).toContain("connect-src 'self';");
    expect(policy).toContain("frame-ancestors 'none'");
    expect(answer.headers.get("referrer-policy")).toBe("no-referrer");
  });

  test("names the file of the master key to browsers on this machine, and to none behind a proxy", async () => {
    expect(await keyPlaceOf(mesh)).toEqual({ file: keyFile });
    const proxied: Record<string, string>[] = [
      { "X-Forwarded-For": "203.0.113.7" },
      { Forwarded: "for=203.0.113.7" },
      { "X-Real-IP": "203.0.113.7" },
      { "X-Forwarded-Host": "localhost" },
      { Via: "1.1 proxy" },
      { Host: "mesh.example.com" },
    ];
    for (const headers of proxied)
      expect({ headers, place: await keyPlaceOf(mesh, headers) }).toEqual({ headers, place: { file: null } });
    const local = { headers: {}, hostname: "localhost", httpVersion: "1.1" };
    const from = (remoteAddress: string, more: object = {}) =>
      isOfThisMachine({ ...local, ...more, socket: { remoteAddress } } as never);
    expect(
      ["::1", "127.0.0.1", "::ffff:127.0.0.1", "10.0.0.7", "::ffff:10.0.0.7"].map((one) => from(one)),
    ).toEqual([true, true, true, false, false]);
    expect(from("::1", { httpVersion: "1.0" })).toBe(false);
  });

  test("names no file where proxies are trusted, or none is set", async () => {
    const env = { WEB_DIR: join(folder, "dist") };
    await using proxied = await startFixture({ env: { ...env, MASTER_KEY_FILE: keyFile, TRUST_PROXY: "1" } });
    expect(await keyPlaceOf(proxied)).toEqual({ file: null });
    await using other = await startFixture({ env });
    expect(await keyPlaceOf(other)).toEqual({ file: null });
  });

  test("is the page of each view that a browser is led to", async () => {
    for (const path of ["/devices", "/devices/pump-1/shadow", "/customers", "/keys?sort=name"]) {
      const answer = await read(path, browser);
      expect({ path, status: answer.status, body: await answer.text() }).toEqual({
        path,
        status: 200,
        body: page,
      });
    }
  });

  test("hides no mistyped path of the API, from browsers neither", async () => {
    for (const path of ["/api/v2/devises", "/docs/none", "/assets/none.js", "/customer/none"]) {
      const answer = await read(path, browser);
      expect({ path, status: answer.status }).toEqual({ path, status: 404 });
      expect(answer.headers.get("content-type")).toBe("application/problem+json");
    }
    expect((await read("/devices", { accept: "application/json" })).status).toBe(404);
    expect((await read("/devices", browser, "POST")).status).toBe(404);
  });

  test("has the API reference at /docs for anyone, never kept, under the policy of its pages", async () => {
    for (const path of ["/docs", "/docs/"]) {
      const answer = await read(path, { "accept-encoding": "br" });
      expect([answer.status, await answer.text()]).toEqual([200, reference]);
      expect(answer.headers.get("content-encoding")).toBe("br");
      expect(answer.headers.get("cache-control")).toBe("no-store");
      expect(answer.headers.get("content-security-policy")).toContain("script-src 'self';");
      expect((await read(path, {}, "POST")).status).toBe(405);
    }
  });

  test("leaves the routes of the gateway as they are", async () => {
    expect(await (await read("/docs/errors", browser)).text()).toContain("device_offline");
    expect((await read("/confirm?token=bad", browser)).status).toBe(404);
    expect((await mesh.fetch("/api/v2/devices")).status).toBe(200);
  });

  test("has files that browsers keep for good, as their names change with what is in them", async () => {
    const answer = await read("/assets/index-abc.js");
    expect(answer.headers.get("content-type")).toBe("text/javascript; charset=utf-8");
    expect(answer.headers.get("cache-control")).toBe("public, max-age=31536000, immutable");
    expect(await answer.text()).toBe(script);
    const icon = await read("/icon.svg");
    expect(icon.headers.get("cache-control")).toBe("public, max-age=3600");
    expect(icon.headers.get("content-type")).toBe("image/svg+xml");
    await icon.body?.cancel();
  });

  test.each([
    ["br, gzip", "br"],
    ["gzip", "gzip"],
    ["br;q=0, gzip", "gzip"],
    ["identity", null],
  ])("sends to who accepts %s what the build has compressed", async (accepted, encoding) => {
    const answer = await read("/assets/index-abc.js", { "accept-encoding": accepted });
    expect(answer.headers.get("content-encoding")).toBe(encoding);
    expect(answer.headers.get("vary")).toContain("Accept-Encoding");
    expect(await answer.text()).toBe(script);
  });

  test("answers HEAD without a body and refuses to be written", async () => {
    const head = await read("/", {}, "HEAD");
    expect(head.status).toBe(200);
    expect(head.headers.get("content-length")).toBe(String(page.length));
    expect(await head.text()).toBe("");
    const written = await read("/assets/index-abc.js", {}, "POST");
    expect(written.status).toBe(405);
    expect(written.headers.get("allow")).toBe("GET, HEAD");
  });

  test("leads nowhere out of its folder and serves no other kind of file", async () => {
    const paths = [
      "/../secret.js",
      "/assets/../../secret.js",
      "/..%2fsecret.js",
      "/%2e%2e/secret.js",
      "/assets/..%5c..%5csecret.js",
      "//secret.js",
      "/notes.txt",
      "/assets/index-abc.js.br",
      "/assets",
    ];
    for (const path of paths) {
      const answer = await asWritten(path);
      expect({ path, status: answer.statusCode }).toEqual({ path, status: 404 });
    }
  });
});

test("says of its files that they depend on what the client accepts, and on its origin where some may call", async () => {
  await using open = await startFixture({
    env: { WEB_DIR: join(folder, "dist"), CORS_ORIGINS: "https://app.example.com" },
  });
  const answer = await open.fetch("/assets/index-abc.js", { key: null });
  expect(answer.headers.get("vary")).toBe("Origin, Accept-Encoding");
});

test("a folder without a build leaves / to the API reference", async () => {
  await using bare = await startFixture({ env: { WEB_DIR: join(folder, "none") } });
  const answer = await bare.fetch("/", { key: null });
  expect(answer.status).toBe(302);
  expect(answer.headers.get("location")).toBe("/docs");
});

describe("a gateway that runs", () => {
  /** Writes a build in place, as `vite build` does: what was there goes first. */
  async function build(dist: string, name: string): Promise<void> {
    await rm(dist, { recursive: true, force: true });
    await mkdir(join(dist, "assets"), { recursive: true });
    await writeFile(join(dist, "index.html"), `<title>${name}</title>`);
    await writeFile(join(dist, "assets", `index-${name}.js`), name);
  }

  /** A gateway whose clock stands unless it is moved, and what it answers as the page and as a script. */
  async function serving(dist: string) {
    const clock = new ManualClock(new Date());
    const gateway = await startFixture({ clock, env: { WEB_DIR: dist } });
    const get = async (path: string) => {
      const answer = await gateway.fetch(path, { key: null, headers: { accept: "*/*" } });
      return answer.status === 200 ? await answer.text() : answer.status;
    };
    return {
      /** Lets so much time pass since now, by the clock that files have their times from. */
      pass: (ms: number) => clock.advance(Date.now() - clock.now().getTime() + ms),
      page: () => get("/"),
      script: (name: string) => get(`/assets/index-${name}.js`),
      [Symbol.asyncDispose]: () => gateway[Symbol.asyncDispose](),
    };
  }

  test("serves a new build once it is whole, and the scripts of the one before to pages that are open", async () => {
    const dist = join(folder, "rebuilt");
    await build(dist, "one");
    await using gateway = await serving(dist);
    expect([await gateway.page(), await gateway.script("one")]).toEqual(["<title>one</title>", "one"]);

    await build(dist, "two");
    await gateway.pass(1_000);
    expect([await gateway.page(), await gateway.script("two")]).toEqual(["<title>one</title>", 404]);
    await gateway.pass(3_000);
    expect([await gateway.page(), await gateway.script("two")]).toEqual(["<title>two</title>", "two"]);
    expect(await gateway.script("one")).toBe("one");

    await build(dist, "three");
    await gateway.pass(60_000);
    expect([await gateway.page(), await gateway.script("two")]).toEqual(["<title>three</title>", "two"]);
    expect(await gateway.script("one")).toBe(404);
  });

  test("goes on with the build it has when the folder is emptied", async () => {
    const dist = join(folder, "emptied");
    await build(dist, "one");
    await using gateway = await serving(dist);
    await rm(dist, { recursive: true });
    await gateway.pass(60_000);
    expect([await gateway.page(), await gateway.script("one")]).toEqual(["<title>one</title>", "one"]);
  });

  test("serves the first build that is made beside it", async () => {
    const dist = join(folder, "late");
    await using gateway = await serving(dist);
    expect(await gateway.page()).toBe(302);
    await build(dist, "one");
    await gateway.pass(60_000);
    expect([await gateway.page(), await gateway.script("one")]).toEqual(["<title>one</title>", "one"]);
  });
});

/** A request whose path nobody makes tidy on its way. */
function asWritten(path: string): Promise<IncomingMessage> {
  const { hostname, port } = new URL(mesh.url);
  return new Promise((resolve, reject) => {
    httpRequest({ hostname, port, path }, (answer) => resolve(answer.resume()))
      .on("error", reject)
      .end();
  });
}

/** The answer to where the master key is, asked with headers that `fetch` would not send. */
async function keyPlaceOf(
  { url }: Pick<Fixture, "url">,
  headers: Record<string, string> = {},
): Promise<unknown> {
  const { hostname, port } = new URL(url);
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    httpRequest({ hostname, port, path: "/key-place.json", headers }, resolve).on("error", reject).end();
  });
  expect(answer.headers["cache-control"]).toBe("no-store");
  return await readJson(answer);
}
