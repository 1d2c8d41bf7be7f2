import { fakeDevice } from "@devmesh/testkit/fakes";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "@jest/globals";
import { type Fixture, startFixture } from "./gateway-fixture.ts";

let mesh: Fixture;
beforeAll(async () => {
  mesh = await startFixture();
});
afterEach(() => mesh.fakes.reset());
afterAll(async () => mesh[Symbol.asyncDispose]());

/** Status, tag and length of an answer to a client that has these tags. */
async function ask(path: string, known?: string, method = "GET") {
  const headers = known === undefined ? {} : { "if-none-match": known };
  const answer = await mesh.fetch(path, { method, headers });
  return {
    answer,
    status: answer.status,
    etag: answer.headers.get("etag"),
    size: (await answer.bytes()).length,
  };
}

const [device, devices, firmware] = ["/api/v2/devices/pump", "/api/v2/devices", "/api/v2/firmware"];
const paths = [
  device,
  devices,
  `${devices}?limit=2`,
  firmware,
  `${firmware}/pump/content`,
  "/api/v2/data",
  "/api/v2/jobs",
];

describe.each(paths)("GET %s", (path) => {
  test("is 304 without content, with the tag, where the client names it", async () => {
    const whole = await ask(path);
    expect(whole).toMatchObject({ status: 200, etag: expect.stringMatching(/^"[^"]+"$/) });
    const tag = whole.etag ?? "";
    for (const known of [tag, `W/${tag}`, `"a", W/"b,c" ,${tag}`, "*", " * "])
      for (const method of ["GET", "HEAD"]) {
        const again = await ask(path, known, method);
        expect([known, method, again.status, again.etag, again.size]).toEqual([known, method, 304, tag, 0]);
        expect(again.answer.headers.get("content-type")).toBeNull();
      }
  });

  test("is the whole where the client names another tag, or none", async () => {
    const { etag, size } = await ask(path);
    for (const known of ['"another"', "", (etag ?? "").replaceAll('"', ""), `"x${(etag ?? "").slice(1)}`]) {
      expect([known, await ask(path, known)]).toMatchObject([known, { status: 200, etag, size }]);
      expect(await ask(path, known, "HEAD")).toMatchObject({ status: 200, size: 0 });
    }
  });
});

describe("the tag of a list", () => {
  const listOf = (ids: string[], next: string | null = null) => {
    mesh.fakes.devices.listDevices = async () => ({ next, items: ids.map((id) => fakeDevice(id)) as never });
    return ask(`${devices}?limit=2`);
  };

  test("changes with its items, with what follows, and with their number", async () => {
    mesh.fakes.devices.countDevices = async () => ({ count: 2 });
    const tags = [await listOf(["a", "b"]), await listOf(["a", "c"]), await listOf(["a", "b"], "cursor")];
    mesh.fakes.devices.countDevices = async () => ({ count: 3 });
    tags.push(await listOf(["a", "b"]));
    expect(new Set(tags.map(({ etag }) => etag)).size).toBe(4);
    const { answer } = await ask(`${devices}?limit=2`, tags.at(-1)?.etag ?? "");
    expect([answer.status, answer.headers.get("total-count")]).toEqual([304, "3"]);
  });

  test("is absent where it is streamed", async () => {
    let pages = 0;
    mesh.fakes.devices.listDevices = async () => ({
      next: pages++ === 0 ? "cursor" : null,
      items: [fakeDevice(`d${pages}`)] as never,
    });
    expect(await ask(devices, "*")).toMatchObject({ status: 200, etag: null });
  });
});

test("a POST and an answer without a tag take no If-None-Match", async () => {
  mesh.fakes.devices.patchDevice = async () => ({ etag: '"1"', device: fakeDevice("pump") as never });
  const posted = await mesh.fetch(device, { method: "POST", json: {}, headers: { "if-none-match": "*" } });
  expect(posted.status).toBe(200);
  expect((await ask("/api/v2/mqtt", "*")).status).toBe(200);
});
