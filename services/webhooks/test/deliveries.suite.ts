import { redactUrl } from "@devmesh/contracts/model/webhook";
import { eventually } from "@devmesh/testkit/eventually";
import { fakeDevice } from "@devmesh/testkit/fakes";
import type { StartedService } from "@devmesh/testkit/service-process";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { type CloudEvent, HTTP } from "cloudevents";
import { Webhook } from "standardwebhooks";
import { call, openWebhooks, reasonOf, startReceiver, type WebhooksFixture } from "./webhooks-fixture.ts";

const now = () => new Date().toISOString();

/** What the service delivers, over one store. */
export function describeDeliveries(storeUrl: () => string | undefined): void {
  let mesh: WebhooksFixture;
  let receiver: Awaited<ReturnType<typeof startReceiver>>;
  let service: StartedService;
  let counter = 0;

  beforeAll(async () => {
    mesh = await openWebhooks(storeUrl());
    receiver = await startReceiver();
    service = await mesh.start();
  });
  afterAll(async () => {
    await service.end();
    await receiver[Symbol.asyncDispose]();
    await mesh[Symbol.asyncDispose]();
  });

  type Asked = Omit<Parameters<WebhooksFixture["client"]["createWebhook"]>[0], "url">;

  /** A webhook with a separate path. */
  async function created(asked: Asked) {
    const path = `/hook-${++counter}`;
    const webhook = await mesh.client.createWebhook({ ...asked, url: receiver.url(path) }, call());
    return { ...webhook, path };
  }
  const online = (id: string) => mesh.deviceEvents.online({ id, timestamp: now() });
  const offline = (id: string) => mesh.deviceEvents.offline({ id, timestamp: now() });
  const subjectsAt = (path: string) => receiver.eventsAt(path).map(({ subject }) => subject);

  test("an event is sent once, signed, as it happens", async () => {
    const { path, secret, id } = await created({ events: ["offline"] });
    await online("pump");
    await offline("pump");
    const request = await eventually(() => receiver.received.find((one) => one.path === path));
    const event = new Webhook(secret).verify(request.body, request.headers as Record<string, string>);
    expect(event).toMatchObject({
      specversion: "1.0",
      source: "https://mesh.example.com/api/v2",
      type: "devmesh.offline",
      subject: "pump",
      data: {},
    });
    expect(request.headers).toMatchObject({
      "content-type": "application/cloudevents+json; charset=utf-8",
      "user-agent": "Devmesh-Webhooks",
    });
    await eventually(async () => {
      const { state } = await mesh.client.readWebhook({ id }, call());
      return state.waiting === 0 && state.last_success_at !== null;
    });
    expect(receiver.eventsAt(path)).toHaveLength(1);
  });

  test("devices, labels and names of functions choose events", async () => {
    const ofDevice = await created({ events: ["online"], devices: ["chosen"] });
    const ofLabel = await created({ events: ["online"], labels: ["site-1", "site-2"] });
    const ofName = await created({ events: ["rpc.out.alarm"] });
    mesh.labels.set("chosen", []);
    mesh.labels.set("labelled", ["a", "site-2"]);
    for (const id of ["other", "chosen", "labelled"]) await online(id);
    const said = { id: "pump", timestamp: now(), payload: { celsius: 91 } };
    for (const name of ["hello", "alarm"]) await mesh.rpcEvents.rpc_out({ ...said, name });
    await eventually(() => receiver.eventsAt(ofName.path).length > 0 && subjectsAt(ofLabel.path).length > 0);
    await eventually(() => subjectsAt(ofDevice.path).length > 0);
    expect(subjectsAt(ofDevice.path)).toEqual(["chosen"]);
    expect(subjectsAt(ofLabel.path)).toEqual(["labelled"]);
    expect(receiver.eventsAt(ofName.path)).toMatchObject([
      { type: "devmesh.rpc.out.alarm", data: { celsius: 91 } },
    ]);
  });

  test("what a receiver of webhooks caused is sent to none", async () => {
    const { path, id } = await created({ events: ["online", "updated", "rpc.in.*"] });
    const event = (device: string) => ({ id: device, timestamp: now() });
    const caused = { fromWebhook: true };
    await mesh.deviceEvents.online(event("caused"), caused);
    await mesh.deviceEvents.updated({ ...event("caused"), device: fakeDevice("caused") }, caused);
    mesh.rpcEvents.rpc_in({ ...event("caused"), func: "Echo" }, caused);
    await online("other");
    await eventually(async () => {
      const { state } = await mesh.client.readWebhook({ id }, call());
      return state.waiting === 0 && receiver.eventsAt(path).length > 0;
    });
    expect(subjectsAt(path)).toEqual(["other"]);
  });

  test("labels choose the event of a deleted device by those that it had", async () => {
    const { path } = await created({ events: ["deleted"], labels: ["site-1"] });
    const deleted = (id: string, labels?: string[]) =>
      mesh.deviceEvents.deleted({ id, timestamp: now(), ...(labels && { labels }) });
    await deleted("other", ["site-2"]);
    await deleted("without", []);
    await deleted("chosen", ["a", "site-1"]);
    // An event of an earlier release says nothing of labels.
    await deleted("unknown");
    await eventually(() => subjectsAt(path).length === 2);
    expect(subjectsAt(path).sort()).toEqual(["chosen", "unknown"]);
    expect(receiver.eventsAt(path).map(({ data }) => data)).toEqual([{}, {}]);
  });

  test("a failed delivery comes again under the same id, and a healthy receiver beside it waits for nothing", async () => {
    const failing = await created({ events: ["online"] });
    const healthy = await created({ events: ["online"] });
    const ids: unknown[] = [];
    let delivered = 0;
    receiver.answers.set(failing.path, ({ headers }) => {
      ids.push(headers["webhook-id"]);
      if (ids.length === 1) return 500;
      delivered = receiver.eventsAt(healthy.path).length;
      return undefined;
    });
    await online("again");
    await eventually(() => ids.length === 2);
    expect(delivered).toBe(1);
    expect(ids[1]).toBe(ids[0]);
    expect(receiver.eventsAt(failing.path)).toHaveLength(1);
  });

  test("410 disables a webhook, whose events are gone; it begins again by hand", async () => {
    const { id, path } = await created({ events: ["online"] });
    receiver.answers.set(path, () => 410);
    await online("gone");
    await eventually(async () => {
      const { enabled, disabled_because } = await mesh.client.readWebhook({ id }, call());
      return !enabled && disabled_because === "gone";
    });
    expect(await reasonOf(mesh.client.retryDeadDeliveries({ id }, call()))).toBe("webhook_disabled");
    receiver.answers.delete(path);
    await online("between");
    expect(await mesh.client.patchWebhook({ id, patch: { enabled: true } }, call())).toMatchObject({
      enabled: true,
      disabled_because: null,
    });
    await online("after");
    await eventually(() => subjectsAt(path).includes("after"));
    expect(subjectsAt(path)).toEqual(["after"]);
  });

  test("410 of a URL that was changed meanwhile disables nothing", async () => {
    const { id, path } = await created({ events: ["online"] });
    let answer: (() => void) | undefined;
    receiver.answers.set(path, (_request, response) => {
      answer = () => response.writeHead(410).end();
      return 0;
    });
    await online("moved");
    const answerOld = await eventually(() => answer);
    await mesh.client.patchWebhook({ id, patch: { url: receiver.url(`${path}-new`) } }, call());
    answerOld();
    await eventually(() => subjectsAt(`${path}-new`).includes("moved"));
    expect(await mesh.client.readWebhook({ id }, call())).toMatchObject({ enabled: true });
  });

  test("a record that is stored right after a webhook was created or began again is delivered", async () => {
    const push = () => {
      const id = (mesh.records.at(-1)?.id ?? 0) + 1;
      mesh.records.push({ id, timestamp: now(), device_id: "early", topic: "db/early/t", message: "m" });
      return `rec-${id}`;
    };
    const { id, path } = await created({ events: ["data"], devices: ["early"] });
    const sent = [push()];
    const idsAt = () => receiver.eventsAt(path).map((event) => event.id);
    await eventually(() => idsAt().length === 1);
    await mesh.client.patchWebhook({ id, patch: { enabled: false } }, call());
    push();
    await mesh.client.patchWebhook({ id, patch: { enabled: true } }, call());
    sent.push(push());
    await eventually(() => idsAt().length >= 2);
    expect(idsAt()).toEqual(sent);
  });

  test("a batch that was sent before a change of the name comes again under its id", async () => {
    const { id, path } = await created({
      events: ["data"],
      records: { batch: 4, wait_ms: 0 },
      devices: ["a"],
    });
    await eventually(() => mesh.followed.has("a"));
    const asked: unknown[] = [];
    let fails: (() => void) | undefined;
    receiver.answers.set(path, ({ headers }, response) => {
      asked.push(headers["webhook-id"]);
      if (asked.length > 1) return undefined;
      fails = () => response.writeHead(500).end();
      return 0;
    });
    const push = () => {
      const at = (mesh.records.at(-1)?.id ?? 0) + 1;
      mesh.records.push({ id: at, timestamp: now(), device_id: "a", topic: "db/a/t", message: "m" });
    };
    push();
    push();
    const fail = await eventually(() => fails);
    await mesh.client.patchWebhook({ id, patch: { name: "another" } }, call());
    push();
    fail();
    await eventually(() => receiver.eventsAt(path).length >= 3);
    expect(asked[1]).toBe(asked[0]);
  });

  test("an event that is queued for one webhook is delivered in the form of a chat", async () => {
    const { id, path } = await created({ events: [] });
    await mesh.queueFor(id, { format: "slack", text: "pump is warm" });
    const request = await eventually(() => receiver.received.find((found) => found.path === path));
    expect(JSON.parse(request.body)).toEqual({ text: "pump is warm" });
    expect(request.headers["webhook-id"]).toBe("alert-1");
  });

  test("a test says what became of it, and counts for nothing", async () => {
    const { id, path } = await created({ events: [] });
    expect(await mesh.client.testWebhook({ id }, call())).toMatchObject({ status: 204, error: null });
    expect(receiver.eventsAt(path)).toMatchObject([{ type: "devmesh.test" }]);
    receiver.answers.set(path, () => 500);
    expect(await mesh.client.testWebhook({ id }, call())).toMatchObject({ status: 500, error: "status 500" });
    expect((await mesh.client.readWebhook({ id }, call())).state.last_failure).toBeNull();
  });

  test("a URL is refused where it is written, with the reason", async () => {
    const refuse = (url: string) => mesh.client.createWebhook({ url, events: [] }, call());
    for (const url of [
      "https://10.0.0.1/",
      "http://[fe80::1]/",
      "https://user@example.com/",
      "https://no.invalid/",
    ])
      await expect(refuse(url)).rejects.toMatchObject({
        reason: "url_refused",
        details: [{ pointer: "/url", detail: expect.stringMatching(/\w+ \w+/) }],
      });
    const { id } = await created({ events: [] });
    const patched = mesh.client.patchWebhook({ id, patch: { url: "https://169.254.169.254/" } }, call());
    expect(await reasonOf(patched)).toBe("url_refused");
  });

  const key = "mk_4fT9wXq2LmZ8sVb1NcR6yKp3HdGj7uAe";
  test.each([
    ["in the query", `https://example.com/?access_token=${key}`],
    ["in the path", `https://example.com/${key.replace("mk", "ot")}/x`],
    ["with escapes", `https://example.com/?access_token=${key.replace("_", "%5f").replace("k", "%6B")}`],
    ["in the name of the host", `https://${key}.example.com/`],
    ["before a word", `https://example.com/#${key.replace("mk", "sk")}-x`],
  ])("a key of the mesh is refused in a URL: %s", async (_where, url) => {
    const refused = {
      reason: "url_refused",
      details: [{ pointer: "/url", detail: expect.stringMatching(/^holds a key of this mesh/) }],
    };
    await expect(mesh.client.createWebhook({ url, events: [] }, call())).rejects.toMatchObject(refused);
    const { id } = await created({ events: [] });
    await expect(mesh.client.patchWebhook({ id, patch: { url } }, call())).rejects.toMatchObject(refused);
  });

  test("what only looks like a key is not refused", async () => {
    for (const path of [`/task${key.slice(1)}`, `/${key}0`, `/${key.slice(0, -1)}`, `/xx${key.slice(2)}`])
      await mesh.client.createWebhook({ url: receiver.url(path), events: [] }, call());
  });

  test("a URL that a session has read is not stored in place of the whole one", async () => {
    const { id, url } = await created({ events: [] });
    const shown = redactUrl(url);
    expect(shown).toBe(`${new URL(url).origin}/…`);
    const patch = (patch: { url: string; name: string }) => mesh.client.patchWebhook({ id, patch }, call());
    expect(await patch({ url: shown, name: "same" })).toMatchObject({ url, name: "same" });
    const refused = {
      reason: "url_refused",
      details: [{ pointer: "/url", detail: expect.stringContaining("only its beginning") }],
    };
    for (const other of ["https://example.com/…", new URL(shown).href, `${url}…`])
      await expect(patch({ url: other, name: "other" })).rejects.toMatchObject(refused);
    await expect(mesh.client.createWebhook({ url: shown, events: [] }, call())).rejects.toMatchObject(
      refused,
    );
    expect(await mesh.client.readWebhook({ id }, call())).toMatchObject({ url, name: "same" });
  });

  test("a secret is replaced once a day, both sign meanwhile, and neither is at rest or logged", async () => {
    const { id, path, secret: first } = await created({ events: ["online"] });
    const { secret: second } = await mesh.client.rotateSecret({ id }, call());
    expect(await mesh.client.readSecret({ id }, call())).toEqual({ secret: second });
    expect(await reasonOf(mesh.client.rotateSecret({ id }, call()))).toBe("secret_rotated_recently");
    await online("rotated");
    const { body, headers } = await eventually(() => receiver.received.find((one) => one.path === path));
    for (const secret of [first, second]) new Webhook(secret).verify(body, headers as Record<string, string>);
    await mesh.buryFor(id, ["given-up"]);
    const atRest = await mesh.atRest();
    expect(atRest).toContain(id);
    expect(atRest).toContain("given-up");
    for (const text of [service.output(), await service.metrics(), atRest])
      for (const secret of [first, second]) expect(text).not.toContain(secret.slice("whsec_".length));
  });

  test("a change of events holds from its answer on, and a deleted webhook gets nothing", async () => {
    const { id, path } = await created({ events: ["online"] });
    await mesh.client.patchWebhook({ id, patch: { events: ["offline"] } }, call());
    await online("late");
    await offline("late");
    await eventually(() => receiver.eventsAt(path).length > 0);
    expect(receiver.eventsAt(path).map(({ type }) => type)).toEqual(["devmesh.offline"]);
    await mesh.client.deleteWebhook({ id }, call());
    await offline("later");
    expect(await reasonOf(mesh.client.readWebhook({ id }, call()))).toBe("webhook_not_found");
    const { items } = await mesh.client.listWebhooks({}, call());
    expect(items.map((one) => one.id)).not.toContain(id);
  });

  test("records arrive in their order, in batches, each once", async () => {
    const { path } = await created({ events: ["data"], records: { batch: 4, wait_ms: 0 } });
    const single = await created({ events: ["data"], devices: ["pump"] });
    await eventually(() => mesh.followed.has("all") && mesh.followed.has("pump"));
    const from = mesh.records.length;
    for (let at = 1; at <= 10; at++)
      mesh.records.push({
        id: from + at,
        timestamp: now(),
        device_id: at % 2 === 0 ? "pump" : "other",
        topic: "db/x/t",
        message: `m${at}`,
      });
    const idsAt = (of: string) => receiver.eventsAt(of).map((event) => event.id);
    await eventually(() => idsAt(path).length >= 10 && idsAt(single.path).length >= 5);
    expect(idsAt(path)).toEqual(Array.from({ length: 10 }, (_, at) => `rec-${from + at + 1}`));
    expect(idsAt(single.path)).toEqual([2, 4, 6, 8, 10].map((at) => `rec-${from + at}`));
    const [batch] = receiver.received.filter((one) => one.path === path);
    expect(batch?.headers).toMatchObject({
      "content-type": "application/cloudevents-batch+json; charset=utf-8",
      "webhook-id": `rec-${from + 1}-${from + 4}`,
    });
    const parsed = HTTP.toEvent({ headers: batch?.headers ?? {}, body: batch?.body ?? "" }) as CloudEvent[];
    expect(parsed.map((event) => [event.validate(), event.type])).toEqual(
      Array(4).fill([true, "devmesh.data"]),
    );
  });

  test("what is given up is listed, sent again once, and gone with its device", async () => {
    const { id, path } = await created({ events: ["online"] });
    expect(await mesh.client.listDeadDeliveries({ id }, call())).toEqual({ next: null, items: [] });
    // A process that dies before the acknowledgement gives the same delivery up twice.
    const storedAt = new Date();
    for (let time = 0; time < 2; time++) await mesh.buryFor(id, ["kept", "deleted"], storedAt);
    const { items } = await mesh.client.listDeadDeliveries({ id }, call());
    expect(items.map(({ event }) => event.subject)).toEqual(["kept", "deleted"]);
    expect((await mesh.client.readWebhook({ id }, call())).state.dead).toBe(2);
    await mesh.ofDevicesClient.purgeDevice({ device_id: "deleted" }, call());
    const [left, ...others] = (await mesh.client.listDeadDeliveries({ id }, call())).items;
    expect([left?.event.subject, others]).toEqual(["kept", []]);
    const retry = () => mesh.client.retryDeadDeliveries({ id, dead: left?.id ?? "" }, call());
    await retry();
    expect(await reasonOf(retry())).toBe("dead_letter_not_found");
    await eventually(() => subjectsAt(path).includes("kept"));
    await mesh.buryFor(id, ["one", "other"]);
    expect(await mesh.client.retryDeadDeliveries({ id }, call())).toEqual({ queued: 2 });
    await eventually(() => subjectsAt(path).length === 3);
  });
}
