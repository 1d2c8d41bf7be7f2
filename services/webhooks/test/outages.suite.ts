import { rm } from "node:fs/promises";
import { eventually } from "@devmesh/testkit/eventually";
import type { TestMongodb } from "@devmesh/testkit/mongodb";
import { startTcpProxy } from "@devmesh/testkit/tcp-proxy";
import { expect, test } from "@jest/globals";
import { call, openWebhooks, startReceiver, type WebhooksFixture } from "./webhooks-fixture.ts";

const now = () => new Date().toISOString();
const recordsOf = { batch: 4, wait_ms: 0 };

/** Stores records, as `data` does; their ids are numbers from 1. */
function store(mesh: WebhooksFixture, count: number): void {
  for (let left = count; left > 0; left--) {
    const id = mesh.records.length + 1;
    mesh.records.push({ id, timestamp: now(), device_id: "pump", topic: "db/pump/t", message: `m${id}` });
  }
}

/** Publishes until the stream has acknowledged it. */
const publish = (mesh: WebhooksFixture, id: string) =>
  eventually(
    async () => (await mesh.deviceEvents.offline({ id, timestamp: now() }, { dedupeId: id })) === "ok",
  );

const idsOf = (mesh: WebhooksFixture) => mesh.records.map(({ id }) => `rec-${id}`);

/** What becomes of events and records when something is away, over one store. */
export function describeOutages(storeUrl: () => string | undefined): void {
  test("a deleted webhook whose receiver does not answer delays none that is created then", async () => {
    await using mesh = await openWebhooks(storeUrl());
    await using receiver = await startReceiver();
    await using _ = await mesh.start();
    const order: string[] = [];
    receiver.answers.set("/silent", (_request, response) => {
      order.push("asked");
      response.on("close", () => order.push("closed"));
      return 0;
    });
    const create = (path: string, events: "online" | "data") =>
      mesh.client.createWebhook({ url: receiver.url(path), events: [events] }, call());
    const silent = [await create("/silent", "online"), await create("/silent", "data")];
    await eventually(() => mesh.followed.has("all"));
    store(mesh, 1);
    await mesh.deviceEvents.online({ id: "first", timestamp: now() });
    await eventually(() => order.length === 2);
    for (const { id } of silent) await mesh.client.deleteWebhook({ id }, call());
    // The first may begin in the round that finds the deletion.
    for (const path of ["/next-1", "/next-2"]) {
      await create(path, "online");
      await mesh.deviceEvents.online({ id: "next", timestamp: now() });
      await eventually(() => receiver.eventsAt(path).length > 0);
    }
    expect(order).toEqual(["asked", "asked"]);
  });

  test("a service that stops waits for no receiver that does not answer; the next one sends the same", async () => {
    await using mesh = await openWebhooks(storeUrl());
    await using receiver = await startReceiver();
    const service = await mesh.start({ DRAIN_MS: "1000" });
    const asked: unknown[] = [];
    receiver.answers.set("/silent", ({ headers }) => {
      asked.push(headers["webhook-id"]);
      return 0;
    });
    const url = receiver.url("/silent");
    const events = await mesh.client.createWebhook({ url, events: ["offline"] }, call());
    await mesh.client.createWebhook({ url, events: ["data"], records: recordsOf }, call());
    await eventually(() => mesh.followed.has("all"));
    store(mesh, 4);
    await publish(mesh, "pump");
    await eventually(() => asked.length === 2);
    // It ends by itself, before it would be ended.
    expect([await service.end(), service.output()]).toEqual([0, expect.not.stringContaining("too long")]);
    receiver.answers.delete("/silent");
    await using _ = await mesh.start();
    await eventually(() => receiver.received.length === 2);
    expect(receiver.received.map(({ headers }) => headers["webhook-id"]).sort()).toEqual(asked.sort());
    const { state } = await mesh.client.readWebhook({ id: events.id }, call());
    expect(state.last_failure).toBeNull();
  });

  test("after a loss of all streams a webhook gets a gap and what happens then, and every record once", async () => {
    await using mesh = await openWebhooks(storeUrl());
    await using receiver = await startReceiver();
    await using service = await mesh.startWithClock();
    await mesh.client.createWebhook({ url: receiver.url("/events"), events: ["offline"] }, call());
    await mesh.client.createWebhook(
      { url: receiver.url("/records"), events: ["data"], records: recordsOf },
      call(),
    );
    const seen = () => receiver.eventsAt("/events").map(({ type, subject }) => subject ?? type);
    const recordEvents = () => receiver.eventsAt("/records").filter(({ type }) => type === "devmesh.data");
    const records = () => recordEvents().map(({ id }) => id);
    await service.until(() => mesh.followed.has("all"));
    store(mesh, 10);
    await publish(mesh, "before");
    await service.until(() => seen().includes("before") && records().length >= 10);
    await mesh.broker.kill();
    await rm(mesh.broker.storeDir, { recursive: true });
    store(mesh, 10);
    await mesh.broker.restart();
    await service.until(() => seen().includes("devmesh.gap"));
    await publish(mesh, "after");
    await service.until(() => seen().includes("after") && records().length >= 20);
    expect(seen()).toEqual(["before", "devmesh.gap", "after"]);
    expect(records()).toEqual(idsOf(mesh));
    // An event of the new stream has another id, although its sequence was used before.
    const ids = receiver.eventsAt("/events").map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
  });
}

/** What becomes of events and records while the store cannot be reached. */
export function describeStoreAway(mongodb: () => TestMongodb): void {
  test.each(["cut", "stall"] as const)(
    "while the store is away (%s) nothing is sent; then every event and record is, and what is repeated has the same id",
    async (how) => {
      await using database = mongodb().newDatabase();
      await using proxy = await startTcpProxy(mongodb().port);
      await using mesh = await openWebhooks(database.storeUrlBehind(proxy.port));
      await using receiver = await startReceiver();
      await using service = await mesh.start();
      await mesh.client.createWebhook({ url: receiver.url("/events"), events: ["offline"] }, call());
      await mesh.client.createWebhook(
        { url: receiver.url("/records"), events: ["data"], records: recordsOf },
        call(),
      );
      await eventually(() => mesh.followed.has("all"));
      let published = 0;
      const publishMore = async (count: number) => {
        for (const until = published + count; published < until; published++)
          await publish(mesh, `d${published}`);
      };
      const subjects = () => new Set(receiver.eventsAt("/events").map(({ subject }) => subject));
      const recordIds = () => [...new Set(receiver.eventsAt("/records").map(({ id }) => id))];
      store(mesh, 10);
      await publishMore(20);
      await eventually(() => subjects().size > 0 && receiver.eventsAt("/records").length > 0);
      const during = publishMore(20);
      proxy[how]();
      await during;
      await eventually(async () => (await fetch(`${service.ops}/readyz`)).status === 503);
      const first = published;
      store(mesh, 10);
      await publishMore(20);
      expect([...subjects()].filter((subject) => Number(subject?.slice(1)) >= first)).toEqual([]);
      proxy.restore();
      await eventually(() => subjects().size === published && recordIds().length === mesh.records.length, {
        withinMs: 120_000,
      });
      const idsOfSubject = new Map<string, Set<string>>();
      for (const { subject = "", id } of receiver.eventsAt("/events"))
        idsOfSubject.set(subject, (idsOfSubject.get(subject) ?? new Set()).add(id));
      expect([...idsOfSubject].filter(([, ids]) => ids.size > 1)).toEqual([]);
      expect(recordIds()).toEqual(idsOf(mesh));
      const bodies = new Map<unknown, string>();
      for (const { headers, body } of receiver.received.filter(({ path }) => path === "/records")) {
        const id = headers["webhook-id"];
        expect(bodies.get(id) ?? body).toBe(body);
        bodies.set(id, body);
      }
    },
  );
}
