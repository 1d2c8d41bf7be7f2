import type { Json } from "@devmesh/contracts/model/json";
import { fakeDevice } from "@devmesh/testkit/fakes";
import { openEventStream, openWebSocket } from "@devmesh/testkit/notification-client";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "@jest/globals";
import type { Reply } from "../src/http/exchange.ts";
import { shownTo } from "../src/http/session-reply.ts";
import { record, secrets } from "./fakes.ts";
import { type Fixture, startFixture } from "./gateway-fixture.ts";

const at = "2026-01-01T00:00:00.000Z";
const token = secrets.device;
const kept = "dt_[redacted]";

let mesh: Fixture;
beforeAll(async () => {
  mesh = await startFixture();
});
afterEach(() => mesh.fakes.reset());
afterAll(async () => mesh[Symbol.asyncDispose]());

const read = async (path: string, key: "master" | "session", headers = {}) =>
  await (await mesh.fetch(`/api/v2/${path}`, { key, headers })).text();

/** A device whose shadow has its token in it. */
const leaking = (id: string) => {
  const device = fakeDevice(id, {});
  return { ...device, shadow: { ...device.shadow, tags: { note: `pass=${token}` } } } as typeof device;
};

describe("a session gets no key that is in a text by chance", () => {
  test("in a device and in a list of them", async () => {
    mesh.fakes.devices.readDevice = async ({ id }) => ({ etag: '"7"', device: leaking(id) as never });
    mesh.fakes.devices.listDevices = async () => ({ next: null, items: [leaking("pump")] as never });
    for (const path of ["devices/pump", "devices", "devices?limit=5"]) {
      expect(await read(path, "master")).toContain(`pass=${token}`);
      const shown = await read(path, "session");
      expect(shown).toContain(`pass=${kept}`);
      expect(shown).not.toContain(token);
    }
  });

  test.each(["application/json", "application/x-ndjson", "text/csv"])("in records as %s", async (accept) => {
    const message = `token ${token} of pump`;
    mesh.fakes.data.queryRecords = async ({ after }) =>
      after === undefined
        ? { next: "1", items: [{ ...record(1), message }] }
        : { next: null, items: [{ ...record(2), message }] };
    const path = "data?device_id=pump&limit=2";
    expect((await read(path, "master", { accept })).split(token)).toHaveLength(3);
    const shown = await read(path, "session", { accept });
    expect([shown.split(kept).length, shown.includes(token)]).toEqual([3, false]);
  });

  test("in what an alert, a rule and a webhook are called", async () => {
    const { alerts, webhooks } = mesh.fakes;
    const [rule, webhook] = [
      await alerts.readRule({ id: "r" }, undefined as never),
      await webhooks.readWebhook({ id: "w" }, undefined as never),
    ];
    alerts.readRule = async () => ({ ...rule, note: `log in with ${token}` });
    webhooks.readWebhook = async () => ({ ...webhook, name: token });
    expect(await read("rules/r", "session")).toContain(`log in with ${kept}`);
    expect(await read("webhooks/w", "session")).toContain(`"name":"${kept}"`);
  });

  test("in an error that a device answered", async () => {
    mesh.fakes.bridge.call = async (_, context) =>
      context.fail("device_error", { code: -1, message: `no user ${token}` } as never);
    const call = async (key: "master" | "session") =>
      await (await mesh.fetch("/api/v2/devices/pump/rpc/F", { key, json: {} })).text();
    expect(await call("master")).toContain(token);
    const shown = await call("session");
    expect([shown.includes(kept), shown.includes(token)]).toEqual([true, false]);
  });

  test("in frames, over a WebSocket and as an event stream, live and replayed", async () => {
    const notify = "/api/v2/notify?data=1";
    const [ofMaster, live, events] = [
      await openWebSocket(mesh.url, notify, { key: secrets.master }),
      await openWebSocket(mesh.url, notify, { key: secrets.session }),
      await openEventStream(mesh.url, notify, { key: secrets.session }),
    ];
    await mesh.deviceEvents.online({ id: "pump", timestamp: at });
    await mesh.deviceEvents.updated({ id: "pump", timestamp: at, device: leaking("pump") });
    const [first] = await live.heard(2);
    const again = await openWebSocket(mesh.url, `${notify}&after=${first?.seq}`, { key: secrets.session });
    await again.heard(1);
    await mesh.services.flush();
    mesh.dataEvents.stored({ records: [{ ...record(1), message: token }] });
    const texts = await Promise.all(
      [ofMaster, live, events].map(async (client) => JSON.stringify(await client.heard(3))),
    );
    expect(texts.map((text) => [text.split(token).length, text.split(kept).length])).toEqual([
      [3, 1],
      [1, 3],
      [1, 3],
    ]);
    expect(JSON.stringify(again.frames)).toContain(kept);
    expect(JSON.stringify(again.frames)).not.toContain(token);
    for (const client of [ofMaster, live, events, again]) client.leave();
  });

  test("in a streamed answer, wherever it is cut", async () => {
    const text = `é ${token} ${secrets.master}${secrets.device_key} mk_short x${"a".repeat(50)}${token}b dt_`;
    const shown = `é ${kept} mk_[redacted]dk_[redacted] mk_short x${"a".repeat(50)}${kept}b dt_`;
    const bytes = Buffer.from(text);
    for (let size = 1; size <= bytes.length; size++) {
      async function* chunks() {
        for (let from = 0; from < bytes.length; from += size) yield bytes.subarray(from, from + size);
      }
      const reply: Reply = { status: 200, headers: {}, body: chunks() };
      const { body } = shownTo("session", reply);
      const read: Uint8Array[] = [];
      for await (const chunk of body as AsyncIterable<Uint8Array>) read.push(chunk);
      expect([size, Buffer.concat(read).toString()]).toEqual([size, shown]);
    }
  });

  test("while bytes of firmware stay as they are", async () => {
    const reply: Reply = {
      status: 200,
      headers: { "Content-Type": "application/octet-stream" },
      body: token,
    };
    expect(shownTo("session", reply)).toBe(reply);
  });
});

describe("what a session reads redacted", () => {
  test.each<[path: string, body: Json, pointer: string]>([
    [
      "devices/pump",
      { shadow: { state: { desired: { "a/b": ["x", kept] } } } },
      "/shadow/state/desired/a~1b/1",
    ],
    ["devices/pump", { shadow: { tags: { "pk_[redacted]": 1 } } }, "/shadow/tags/pk_[redacted]"],
    ["devices/pump/rpc/Config.Set", [`pass=${kept}`], "/0"],
  ])("it cannot write back in place of the key: POST %s %j", async (path, json, pointer) => {
    const answer = await mesh.fetch(`/api/v2/${path}`, { key: "session", json });
    expect([answer.status, await answer.json()]).toMatchObject([
      400,
      { reason: "invalid_request", errors: [{ pointer, detail: expect.stringContaining("redacted key") }] },
    ]);
    expect((await mesh.fetch(`/api/v2/${path}`, { key: "master", json })).status).toBe(200);
  });
});

describe("of the URL of a webhook", () => {
  const url = "https://hooks.slack.com:8443/services/T0/B0/secret?access_token=abc#part";

  test("a session reads the origin alone, in each answer; a master key reads all of it", async () => {
    const webhook = { ...(await mesh.fakes.webhooks.readWebhook({ id: "w" }, undefined as never)), url };
    mesh.fakes.webhooks.readWebhook = async () => webhook;
    mesh.fakes.webhooks.patchWebhook = async () => webhook;
    mesh.fakes.webhooks.listWebhooks = async () => ({ next: null, items: [webhook, webhook] });
    const urls = async (key: "master" | "session") => {
      const listed = await Promise.all(["webhooks", "webhooks?limit=2"].map((path) => read(path, key)));
      const patched = await mesh.fetch("/api/v2/webhooks/w", { key, json: { name: "x" } });
      const answers = [...listed, await read("webhooks/w", key), await patched.text()];
      return answers.flatMap((text) => [JSON.parse(text)].flat().map((one: typeof webhook) => one.url));
    };
    expect(new Set(await urls("master"))).toEqual(new Set([url]));
    const shown = await urls("session");
    expect([shown.length, new Set(shown)]).toEqual([6, new Set(["https://hooks.slack.com:8443/…"])]);
  });
});
