import { randomUUID } from "node:crypto";
import { join } from "node:path";
import type { alerts } from "@devmesh/contracts/alerts";
import type { Alert } from "@devmesh/contracts/model/alert";
import type { CallInput } from "@devmesh/service-kit/rpc/implementation";
import { eventually } from "@devmesh/testkit/eventually";
import type { StartedService } from "@devmesh/testkit/service-process";
import { tempFolder } from "@devmesh/testkit/temp-folder";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { type AlertsMesh, call, startAlertsMesh } from "./alerts-mesh.ts";

const running = new AsyncDisposableStack();
let mesh: AlertsMesh;
let client: AlertsMesh["client"];
let mails: AlertsMesh["mails"];
let deliveries: AlertsMesh["deliveries"];
let offlineSince: AlertsMesh["offlineSince"];
let service: StartedService;
let start: () => Promise<StartedService>;
const readAlerts: AlertsMesh["alertsOf"] = (conditions) => mesh.alertsOf(conditions);
const publish: AlertsMesh["publish"] = (...record) => mesh.publish(...record);

/** Waits until expectations hold. */
const until = (check: () => Promise<void>) =>
  eventually(async () => {
    await check();
    return true;
  });

type NewRuleInput = CallInput<typeof alerts, "createRule">["rule"];
const createRule = (rule: Omit<NewRuleInput, "name"> & { name?: string }) =>
  client.createRule({ rule: { name: "rule", ...rule } }, call());

/** What the alerts of a rule are, without what differs in each run. */
const shown = (found: readonly Alert[]) =>
  found
    .map(({ device_id, state, since, fired_at, cleared_at, cleared_why, value, flaps }) => ({
      device_id,
      ...{ state, since, fired_at, cleared_at, cleared_why, value, flaps },
    }))
    .sort((a, b) => String(a.device_id).localeCompare(String(b.device_id)));

beforeAll(async () => {
  mesh = running.use(await startAlertsMesh());
  ({ client, mails, deliveries, offlineSince } = mesh);
  const folder = await tempFolder();
  running.defer(() => folder.remove());
  const storeUrl = `sqlite:${join(folder.path, `${randomUUID()}.db`)}`;
  start = () => mesh.start(storeUrl);
  service = await start();
  running.defer(() => service[Symbol.asyncDispose]());
}, 120_000);
afterAll(() => running.disposeAsync(), 60_000);

/** Waits until a rule on values is evaluated: its first record fires. */
async function whenFollowed(rule: { readonly id: string }, name: string, value: unknown): Promise<void> {
  await until(async () => {
    publish("pump", name, value);
    expect(await readAlerts({ rule_id: rule.id })).not.toEqual([]);
  });
}

test("a record that breaks a rule is a mail with the device's name, and so is its end, in a later one", async () => {
  const channel = await client.createChannel(
    { channel: { kind: "mail", name: "on call", to: ["ann@example.com", "bob@example.com"] } },
    call(),
  );
  const rule = await createRule({
    name: "warm",
    severity: "critical",
    when: { kind: "value", topic: "warm", is: ">", than: 20, pointer: "/c" },
    notify: [channel.id],
    note: "Call Ann",
  });
  await whenFollowed(rule, "warm", { c: 21 });
  await until(async () =>
    expect(mails.map(({ to }) => to).sort()).toEqual(["ann@example.com", "bob@example.com"]),
  );
  expect(mails[0]).toMatchObject({
    alerts: [
      {
        state: "firing",
        rule_name: "warm",
        severity: "critical",
        device_id: "pump",
        device_name: "The pump",
        condition: "warm /c > 20",
        value: "21",
        note: "Call Ann",
      },
    ],
    more: 0,
  });
  publish("pump", "warm", { c: 20 });
  await until(async () =>
    expect(await readAlerts({ rule_id: rule.id })).toMatchObject([
      { state: "cleared", cleared_why: "condition" },
    ]),
  );
  // The next mail of the channel may leave a minute after the first.
  expect(mails.filter(({ to }) => to.startsWith("ann"))).toHaveLength(1);
  await expect(client.deleteChannel({ id: channel.id }, call())).rejects.toMatchObject({
    reason: "channel_in_use",
  });
});

test("a record that breaks a rule is delivered to a webhook, as an event and in words", async () => {
  const channel = await client.createChannel(
    { channel: { kind: "webhook", name: "chat", webhook_id: "wh_1", format: "slack" } },
    call(),
  );
  const rule = await createRule({
    name: "hot",
    when: { kind: "value", topic: "hot", is: ">", than: 20 },
    notify: [channel.id],
  });
  await whenFollowed(rule, "hot", 21);
  await until(async () => expect(deliveries).toHaveLength(1));
  expect(deliveries[0]).toMatchObject({
    webhook_id: "wh_1",
    format: "slack",
    event: { type: "devmesh.alerts", data: { alerts: [{ device_id: "pump", value: 21 }], more: 0 } },
    text: expect.stringContaining("Firing: hot (warning), The pump (pump): hot > 20, value 21, since"),
  });
  await client.deleteRule({ id: rule.id }, call());
});

test("a channel is changed within its kind, and names a webhook that exists", async () => {
  const webhook = { kind: "webhook", name: "chat", webhook_id: "wh_2", format: "ntfy" } as const;
  const bad = client.createChannel({ channel: { ...webhook, webhook_id: "none" } }, call());
  await expect(bad).rejects.toMatchObject({
    reason: "channel_invalid",
    details: [{ pointer: "/webhook_id", detail: "is no webhook" }],
  });
  const { id } = await client.createChannel({ channel: webhook }, call());
  const change = (patch: CallInput<typeof alerts, "changeChannel">["patch"]) =>
    client.changeChannel({ id, patch }, call());
  expect(await change({ name: "night", format: "discord" })).toMatchObject({
    ...webhook,
    name: "night",
    format: "discord",
  });
  await expect(change({ to: ["ann@example.com"] })).rejects.toMatchObject({
    details: [{ pointer: "/to", detail: "does not go with `webhook`" }],
  });
  await expect(change({ webhook_id: "none" })).rejects.toMatchObject({ reason: "channel_invalid" });
  await client.deleteChannel({ id }, call());
  await expect(change({ name: "gone" })).rejects.toMatchObject({ reason: "channel_not_found" });
});

test("a channel is tested three times an hour, also under other channels with its address", async () => {
  const create = (channel: CallInput<typeof alerts, "createChannel">["channel"]) =>
    client.createChannel({ channel }, call());
  const testOf = ({ id }: { readonly id: string }) => client.testChannel({ id }, call());
  const mail = await create({ kind: "mail", name: "<night>", to: ["tess@example.com", "tom@example.com"] });
  for (let sent = 0; sent < 3; sent++) await testOf(mail);
  await expect(testOf(mail)).rejects.toMatchObject({ reason: "too_many_tests" });
  const other = await create({ kind: "mail", name: "other", to: ["Tess@example.com", "tim@example.com"] });
  await expect(testOf(other)).rejects.toMatchObject({ reason: "too_many_tests" });
  await until(async () => expect(mails.filter(({ test }) => test === "<night>")).toHaveLength(6));
  expect(mails.filter(({ to }) => to === "tim@example.com")).toEqual([]);
  const chat = await create({ kind: "webhook", name: "chat", webhook_id: "wh_3", format: "ntfy" });
  await testOf(chat);
  expect(deliveries.at(-1)).toMatchObject({ webhook_id: "wh_3", event: { type: "devmesh.test" } });
  const off = await create({ kind: "webhook", name: "chat", webhook_id: "wh_off", format: "ntfy" });
  await expect(testOf(off)).rejects.toMatchObject({ reason: "channel_target_gone" });
});

test("a device is evaluated while it is one of the rule, and its alert clears when it is deleted", async () => {
  const rule = await createRule({
    where: { labels: { all: ["f"] } },
    when: { kind: "value", topic: "of", is: "==", than: true },
  });
  await until(async () => {
    publish("pump", "of", true);
    publish("fan", "of", true);
    expect(await readAlerts({ rule_id: rule.id })).toMatchObject([{ device_id: "fan", state: "firing" }]);
  });
  const [alert] = await readAlerts({ rule_id: rule.id });
  const patch = { acknowledged: true, note: "seen" } as const;
  await client.changeAlert({ id: alert?.id ?? "", patch, key_id: "k1" }, call());
  expect(await client.readAlert({ id: alert?.id ?? "" }, call())).toMatchObject({
    note: "seen",
    acknowledged_by: "k1",
  });
  await client.changeRule({ id: rule.id, patch: { enabled: false } }, call());
  await until(async () =>
    expect(await readAlerts({ rule_id: rule.id })).toMatchObject([
      { state: "cleared", cleared_why: "rule_disabled", note: "seen" },
    ]),
  );
});

test("a device without a connection fires after its time, and clears when it connects", async () => {
  offlineSince.set("away", Date.now() - 60_000);
  const rule = await createRule({ when: { kind: "offline", longer_than: "PT30S" } });
  await until(async () =>
    expect(await readAlerts({ rule_id: rule.id })).toMatchObject([{ device_id: "away", state: "firing" }]),
  );
  offlineSince.set("away", null);
  await until(async () =>
    expect(await readAlerts({ rule_id: rule.id })).toMatchObject([
      { state: "cleared", cleared_why: "condition" },
    ]),
  );
  await client.deleteRule({ id: rule.id }, call());
});

test("a device without a record fires since its newest one, also after a restart, and clears with the next", async () => {
  const at = Date.now() - 60_000;
  publish("fan", "hush", 1, at);
  publish("fan", "other", 1);
  const when = { kind: "silent", topic: "hush", longer_than: "PT30S" } as const;
  const rule = await createRule({ where: { labels: { all: ["f"] } }, when });
  const expected = [
    {
      device_id: "fan",
      state: "firing",
      since: new Date(at).toISOString(),
      fired_at: new Date(at + 30_000).toISOString(),
    },
    // It has sent nothing since its creation.
    { device_id: "freezer", state: "firing", since: "2026-01-01T00:00:00.000Z" },
  ];
  await until(async () => expect(shown(await readAlerts({ rule_id: rule.id }))).toMatchObject(expected));
  const before = await readAlerts({ rule_id: rule.id });
  const trial = await client.tryRule(
    { rule: { name: "try", where: rule.where, when }, over_ms: 120_000 },
    call(),
  );
  expect(trial).toMatchObject({ devices: 2, matching: 2, cut: false });
  expect(trial.firings.findLast(({ device_id }) => device_id === "fan")).toEqual({
    device_id: "fan",
    from: new Date(at + 30_000).toISOString(),
    until: null,
    value: null,
  });
  service.child.kill("SIGKILL");
  await service.ended;
  const ended = Date.now();
  publish("fan", "hush", 2, ended);
  service = await start();
  await until(async () =>
    expect(shown(await readAlerts({ rule_id: rule.id }))).toMatchObject([
      {
        device_id: "fan",
        state: "cleared",
        cleared_why: "condition",
        cleared_at: new Date(ended).toISOString(),
      },
      { device_id: "freezer", state: "firing" },
    ]),
  );
  expect((await readAlerts({ rule_id: rule.id })).map(({ id }) => id)).toEqual(before.map(({ id }) => id));
  await client.deleteRule({ id: rule.id }, call());
});

test("alerts of a deleted rule clear", async () => {
  const rule = await createRule({ when: { kind: "value", topic: "gone", is: "==", than: "x" } });
  await whenFollowed(rule, "gone", "x");
  await client.deleteRule({ id: rule.id }, call());
  await until(async () =>
    expect(await readAlerts({ rule_id: rule.id })).toMatchObject([{ cleared_why: "rule_deleted" }]),
  );
});

test("a bad rule is refused with a pointer", async () => {
  const bad = { when: { kind: "value", topic: "t", is: ">", than: "warm" }, notify: ["none"] } as const;
  await expect(createRule({ ...bad, notify: [...bad.notify] })).rejects.toMatchObject({
    reason: "rule_invalid",
    details: [
      { pointer: "/when/than", detail: "must be a number" },
      { pointer: "/notify/0", detail: "is no channel" },
    ],
  });
});

test("a service that is killed again and again has the alerts that one has that was never killed", async () => {
  const rule = await createRule({ when: { kind: "value", topic: "k", is: ">", than: 5 } });
  await whenFollowed(rule, "k", 9);
  publish("pump", "k", 1);
  await until(async () => expect(await readAlerts({ rule_id: rule.id, state: "firing" })).toEqual([]));
  const before = await readAlerts({ rule_id: rule.id });
  mesh.pageLimit = 3;
  const ids = ["fan", "freezer", "lamp"];
  const at = Date.now();
  for (let n = 0; n < 150; n++)
    for (const [index, id] of ids.entries()) publish(id, "k", (n * (index + 3)) % 11, at + n);
  for (let kills = 0; kills < 6; kills++) {
    service.child.kill("SIGKILL");
    await service.ended;
    service = await start();
    await new Promise((resolve) => setTimeout(resolve, 60 * kills));
  }
  mesh.pageLimit = 1_000;
  // One episode after the other flaps: each device has one alert, with the times of its last one.
  const expected = ids.map((device_id, index) => {
    let [flaps, holds, last] = [-1, false, 0];
    let value = 0;
    for (let n = 0; n < 150; n++) {
      const now = (n * (index + 3)) % 11;
      if (now > 5 && !holds) [flaps, last, value] = [flaps + 1, n, now];
      holds = now > 5;
    }
    return { device_id, flaps, since: new Date(at + last).toISOString(), value };
  });
  await until(async () => {
    const found = (await readAlerts({ rule_id: rule.id })).filter(({ device_id }) => device_id !== "pump");
    expect(shown(found)).toMatchObject(expected);
  });
  expect((await readAlerts({ rule_id: rule.id })).filter(({ device_id }) => device_id === "pump")).toEqual(
    before,
  );
  // The rule that is tried on these records finds the same.
  const { when } = rule;
  const trial = await client.tryRule({ rule: { name: "try", when }, over_ms: 3_600_000 }, call());
  expect(trial).toMatchObject({ devices: 5, matching: 4, cut: false });
  const found = (await readAlerts({ rule_id: rule.id })).filter(({ device_id }) => device_id !== "pump");
  for (const { device_id, flaps, fired_at, cleared_at, value } of found) {
    const firings = trial.firings.filter((firing) => firing.device_id === device_id);
    expect(firings).toHaveLength(flaps + 1);
    expect(firings.at(-1)).toEqual({ device_id, from: fired_at, until: cleared_at, value });
  }
});
