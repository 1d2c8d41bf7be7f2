import { eventually } from "@devmesh/testkit/eventually";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { Webhook } from "standardwebhooks";
import { storedWebhook } from "./stored-webhook.ts";
import { call, openWebhooks, reasonOf, startReceiver, type WebhooksFixture } from "./webhooks-fixture.ts";

const hour = 3_600_000;
const day = 24 * hour;
const now = () => new Date().toISOString();

/** Tests that take hours and days, over one store. Each starts a service, since clocks do not go back. */
export function describeWithMovedClock(storeUrl: () => string | undefined): void {
  let mesh: WebhooksFixture;
  let receiver: Awaited<ReturnType<typeof startReceiver>>;
  let counter = 0;

  beforeAll(async () => {
    mesh = await openWebhooks(storeUrl());
    receiver = await startReceiver();
  });
  afterAll(async () => {
    await receiver[Symbol.asyncDispose]();
    await mesh[Symbol.asyncDispose]();
  });

  async function created(events: Parameters<WebhooksFixture["client"]["createWebhook"]>[0]["events"]) {
    const path = `/moved-${++counter}`;
    const webhook = await mesh.client.createWebhook({ events, url: receiver.url(path) }, call());
    return { ...webhook, path };
  }
  /** A webhook whose service has stopped. */
  async function createdAlone(events: Parameters<typeof created>[0]) {
    await using _service = await mesh.startWithClock();
    return await created(events);
  }
  /** Leaves nothing to the service of the next test. */
  const deleteAll = () =>
    eventually(async () => {
      const { items } = await mesh.client.listWebhooks({}, call());
      await Promise.all(items.map(({ id }) => reasonOf(mesh.client.deleteWebhook({ id }, call()))));
      return items.length === 0;
    });
  const stateOf = async (id: string) => await mesh.client.readWebhook({ id }, call());
  const offline = (id: string) => mesh.deviceEvents.offline({ id, timestamp: now() });
  const eventsAt = (path: string) => receiver.eventsAt(path).map(({ type, subject }) => subject ?? type);

  test("an event that fails for 24 h is a dead letter with its attempts and the last answer", async () => {
    await using service = await mesh.startWithClock();
    const { id, path } = await created(["offline"]);
    let attempts = 0;
    receiver.answers.set(path, () => {
      attempts++;
      return 500;
    });
    await offline("failing");
    await service.until(async () => attempts > 0 && (await stateOf(id)).state.last_failure !== null);
    service.clock.aheadMs = day;
    const { items } = await service.until(async () => {
      const page = await mesh.client.listDeadDeliveries({ id }, call());
      return page.items.length === 1 && page;
    });
    expect(items).toMatchObject([
      { type: "devmesh.offline", attempts, status: 500, error: "status 500", event: { subject: "failing" } },
    ]);
    expect((await stateOf(id)).state).toMatchObject({ waiting: 0, dead: 1 });
    await deleteAll();
  });

  test("what nobody tried for 24 h is dropped, and told as one gap however often that happens", async () => {
    const { id, path } = await createdAlone(["offline"]);
    receiver.answers.set(path, () => 500);
    const begun = Date.now();
    for (const device of ["old-1", "old-2", "old-3"]) await offline(device);
    await eventually(async () => (await mesh.waitingFor(id)) === 3);
    await using service = await mesh.startWithClock({}, day + hour);
    const isCut = (times: number) => async () => (await service.metric("devmesh_webhook_cut_total")) >= times;
    // The gap itself is a day old by this clock, and dropped again.
    await service.until(isCut(2));
    service.clock.aheadMs = 0;
    receiver.answers.delete(path);
    await service.until(() => eventsAt(path).includes("devmesh.gap"));
    await offline("new");
    await service.until(() => eventsAt(path).includes("new"));
    const gap = receiver.eventsAt(path).find(({ type }) => type === "devmesh.gap");
    const { from, until } = (gap ?? { data: {} }).data as { from: string; until: string };
    expect(Date.parse(from)).toBeGreaterThanOrEqual(begun - 1_000);
    expect(Date.parse(from)).toBeLessThanOrEqual(Date.now());
    expect(Date.parse(until)).toBeGreaterThanOrEqual(Date.parse(from));
    expect(eventsAt(path).filter((one) => one.startsWith("old-"))).toEqual([]);
    await deleteAll();
  });

  test("many cuts of a webhook at a time leave one consumer, in which the gap waits", async () => {
    const { id } = await createdAlone(["offline"]);
    const { row, found } = await mesh.cutOften(id, 20);
    expect([found?.run, found?.gapFrom, found?.waiting]).toEqual([row?.run, null, 1]);
    await using _service = await mesh.startWithClock();
    await deleteAll();
  });

  test.each([
    ["a round of one replica beside a cut by another", "cutWithinRound"],
    ["a replica that dies as it makes a consumer again beside a cut", "cutBesideDeath"],
  ] as const)("%s leaves a consumer in which the gap waits", async (_case, cut) => {
    const { id } = await createdAlone(["offline"]);
    await mesh[cut](id);
    expect(await mesh.waitingFor(id)).toBe(1);
    await using _service = await mesh.startWithClock();
    await deleteAll();
  });

  test("a change of events beside a cut by another replica holds", async () => {
    const { id } = await createdAlone(["offline"]);
    expect(await mesh.cutBesideEdit(id)).toBe(1);
    await using _service = await mesh.startWithClock();
    await deleteAll();
  });

  test("three days of failures disable a webhook, whose consumer is gone; by hand it begins anew", async () => {
    const path = `/moved-${++counter}`;
    const since = Date.now() - 3 * day;
    const failing = { failing_since: since, failed_attempts: 19, created_at: since };
    await mesh.insert(storedWebhook({ id: "wh_failing", url: receiver.url(path), ...failing }));
    receiver.answers.set(path, () => 500);
    await using service = await mesh.startWithClock();
    const read = () => mesh.client.readWebhook({ id: "wh_failing" }, call());
    await service.until(async () => (await read()).disabled_because === "failing");
    expect(await reasonOf(mesh.client.retryDeadDeliveries({ id: "wh_failing" }, call()))).toBe(
      "webhook_disabled",
    );
    await offline("meanwhile");
    expect((await read()).state).toMatchObject({ waiting: 0, failing_since: new Date(since).toISOString() });
    receiver.answers.delete(path);
    await mesh.client.patchWebhook({ id: "wh_failing", patch: { enabled: true } }, call());
    await offline("anew");
    await service.until(() => eventsAt(path).includes("anew"));
    expect(eventsAt(path)).toEqual(["anew"]);
    expect((await read()).state.failing_since).toBeNull();
    await deleteAll();
  });

  test("a webhook whose consumer was not made gets one at the next start, and begins with a gap", async () => {
    const path = `/moved-${++counter}`;
    await mesh.insert(storedWebhook({ id: "wh_row", url: receiver.url(path), created_at: 86_400_000 }));
    await using service = await mesh.startWithClock();
    await service.until(() => eventsAt(path).includes("devmesh.gap"));
    await offline("since");
    await service.until(() => eventsAt(path).includes("since"));
    expect(receiver.eventsAt(path)[0]?.data).toMatchObject({ from: "1970-01-02T00:00:00.000Z" });
    await deleteAll();
  });

  test("a stored URL that is not allowed any more is neither sent to nor tested, in whatever notation", async () => {
    const metadata = ["169.254.169.254", "2852039166", "0251.0376.0251.0376", "0xa9fea9fe"];
    const as6 = ["[::ffff:169.254.169.254]", "[64:ff9b::a9fe:a9fe]", "[2002:a9fe:a9fe::1]", "[fd00::1]"];
    const urls = [...metadata, ...as6].map((host) => `https://${host}/latest/meta-data`);
    for (const [at, url] of urls.entries()) await mesh.insert(storedWebhook({ id: `wh_${at}`, url }));
    await using service = await mesh.startWithClock();
    for (const at of urls.keys()) {
      const id = `wh_${at}`;
      const refused = { status: null, error: "the URL is an address that is not public" };
      await service.until(async () => (await stateOf(id)).state.last_failure !== null);
      expect((await stateOf(id)).state.last_failure).toMatchObject(refused);
      expect(await mesh.client.testWebhook({ id }, call())).toMatchObject(refused);
    }
    await deleteAll();
  });

  test("Retry-After of 429 pauses the whole webhook for as long, and no other", async () => {
    await using service = await mesh.startWithClock();
    const [busy, other] = [await created(["offline"]), await created(["offline"])];
    const times: number[] = [];
    receiver.answers.set(busy.path, (_request, response) => {
      times.push(service.clock.now().getTime());
      if (times.length > 1) return undefined;
      response.setHeader("Retry-After", "600");
      return 429;
    });
    await offline("first");
    await service.until(() => times.length === 1);
    await offline("second");
    await service.until(() => eventsAt(other.path).length === 2);
    await service.until(() => times.length > 1, 5_000);
    expect((times[1] ?? 0) - (times[0] ?? 0)).toBeGreaterThanOrEqual(600_000);
    expect(eventsAt(busy.path)).toEqual(["second"]);
    await deleteAll();
  });

  test("a former secret signs for a day after its replacement, which is refused meanwhile", async () => {
    await using service = await mesh.startWithClock();
    service.clock.aheadMs = hour - day;
    const { id, path, secret: first } = await created(["offline"]);
    const { secret: second } = await mesh.client.rotateSecret({ id }, call());
    const verifies = (secret: string) => {
      const { body, headers } = receiver.received.filter((one) => one.path === path).at(-1) ?? {};
      const signed = { ...(headers as Record<string, string>) };
      // The library refuses what is not of now: the time is signed, so it is checked as it was sent.
      const hook = new Webhook(secret);
      const at = new Date(Number(signed["webhook-timestamp"]) * 1_000);
      const expected = hook.sign(signed["webhook-id"] ?? "", at, body ?? "");
      return (signed["webhook-signature"] ?? "").split(" ").includes(expected);
    };
    await offline("during");
    await service.until(() => eventsAt(path).includes("during"));
    expect([first, second].map(verifies)).toEqual([true, true]);
    service.clock.aheadMs = 0;
    expect(await reasonOf(mesh.client.rotateSecret({ id }, call()))).toBe("secret_rotated_recently");
    service.clock.aheadMs = hour;
    await offline("after");
    await service.until(() => eventsAt(path).includes("after"));
    expect([first, second].map(verifies)).toEqual([false, true]);
    const { secret: third } = await mesh.client.rotateSecret({ id }, call());
    expect(new Set([first, second, third]).size).toBe(3);
    await deleteAll();
  });

  test("a full stream loses what waits for the webhook with most, which is told, and nothing else", async () => {
    await using service = await mesh.startWithClock({ WEBHOOK_QUEUE_BYTES: "1M" });
    const [away, healthy] = [await created(["rpc.out.*"]), await created(["rpc.out.*"])];
    receiver.answers.set(away.path, () => 500);
    const payload = "x".repeat(8_000);
    const ids = Array.from({ length: 375 }, (_, at) => `full-${at}`);
    const publish = (id: string) => mesh.rpcEvents.rpc_out({ id, timestamp: now(), name: "log", payload });
    for (let at = 0; at < ids.length; at += 50) await Promise.all(ids.slice(at, at + 50).map(publish));
    const arrived = () => new Set(eventsAt(healthy.path).filter((one) => one.startsWith("full-")));
    // A round of upkeep, which cuts the one with most, comes only when the healthy one has all that there was room for.
    const waitingOf = async (id: string) => (await stateOf(id)).state.waiting;
    await eventually(
      async () => {
        const isTaken = ((await waitingOf(away.id)) ?? 0) > 100 && (await waitingOf(healthy.id)) === 0;
        // Time enough for a repeated pull passes always.
        await service.clock.advance(isTaken ? 5_000 : 50);
        return arrived().size === ids.length;
      },
      { withinMs: 150_000 },
    );
    receiver.answers.delete(away.path);
    await service.until(() => eventsAt(away.path).includes("devmesh.gap"), 5_000);
    expect(eventsAt(healthy.path)).not.toContain("devmesh.gap");
    await deleteAll();
  }, 200_000);
}
