import { expect, test } from "@jest/globals";
import { type EvaluatedMesh, ruleOn, startEvaluation } from "./evaluation-fixture.ts";

const offline = ruleOn({ kind: "offline", longer_than: "PT1M" });

/** What the built-in rule says: the seconds from a time until the mesh did not see, and until it saw again. */
async function blindAlerts(mesh: EvaluatedMesh, since: number): Promise<string[]> {
  const found = await mesh.alerts();
  return found
    .filter(({ rule_id }) => rule_id === "mesh")
    .map(({ device_id, state, since: from, cleared_at }) => {
      const until = cleared_at === null ? "" : ` ${(cleared_at - since) / 1_000}`;
      return `${device_id} ${state} ${(from - since) / 1_000}${until}`;
    });
}

test("a device fires once it is offline for that long, and clears when it connects", async () => {
  await using fixture = await startEvaluation(offline);
  const { mesh, now, pass, found } = fixture;
  fixture.addDevice("pump");
  await pass(30);
  const begin = now();
  mesh.offlineSince.set("pump", begin);
  await pass(59);
  expect(await found(begin)).toEqual([]);
  await pass(6);
  expect(await found(begin)).toEqual([expect.stringMatching(/^pump firing 6\d$/)]);
  mesh.offlineSince.delete("pump");
  await pass(6);
  expect(await found(begin)).toEqual([expect.stringMatching(/^pump cleared .* condition$/)]);
  expect(await blindAlerts(fixture, begin)).toEqual([]);
});

test.each([
  { kind: "offline", longer_than: "PT1M" },
  { kind: "silent", longer_than: "PT1M" },
] as const)(
  "a broker that is away for ten minutes is one alert of the mesh, and none of $kind of devices that return within 90 seconds",
  async (when) => {
    await using fixture = await startEvaluation(ruleOn(when));
    const { mesh, now, pass, found, publish } = fixture;
    const ids = Array.from({ length: 2_000 }, (_, at) => `d${at}`);
    for (const id of ids) fixture.addDevice(id);
    await pass(30);
    for (const id of ids) publish(id, "t");
    await pass(10);
    const begin = now();
    for (const id of ids) mesh.offlineSince.set(id, begin);
    mesh.connectedSince = null;
    mesh.dataAway = when.kind === "silent";
    await pass(600);
    expect(await blindAlerts(fixture, begin)).toEqual([expect.stringMatching(/^null firing -?\d$/)]);
    mesh.connectedSince = now() + 90_000;
    mesh.dataAway = false;
    await pass(40);
    for (const id of ids.slice(1)) publish(id, "t");
    await pass(40);
    for (const id of ids.slice(1)) mesh.offlineSince.delete(id);
    await pass(when.kind === "offline" ? 60 : 12);
    expect(await found(begin)).toEqual([]);
    expect(await blindAlerts(fixture, begin)).toEqual([expect.stringMatching(/^null cleared -?\d 6[89]\d$/)]);
    // One has not come back: the time that the mesh saw counts.
    await pass(90 - (when.kind === "offline" ? 60 : 12) + 3);
    expect((await found(begin)).filter((one) => one.startsWith("d0 "))).toEqual([
      expect.stringMatching(/^d0 firing/),
    ]);
  },
);

test("two thousand devices that are cut off at once are two messages", async () => {
  await using fixture = await startEvaluation({ ...offline, notify: ["mail"] });
  const { mesh, now, pass, messages } = fixture;
  const ids = Array.from({ length: 2_000 }, (_, at) => `d${at}`);
  for (const id of ids) fixture.addDevice(id);
  await pass(30);
  for (const id of ids) mesh.offlineSince.set(id, now());
  await pass(80);
  expect((await fixture.alerts()).filter(({ state }) => state === "firing")).toHaveLength(2_000);
  expect(messages.map(({ mail }) => [mail.alerts.length, mail.more])).toEqual([[0, 0]]);
  expect(messages[0]?.mail.storms).toMatchObject([
    { rule_id: "rule", firing: 2_000, cleared: 0, device_ids: ids.slice(0, 20) },
  ]);
  // They connect again, some at a time: that is one message, after a quarter of an hour.
  for (const id of ids) {
    mesh.offlineSince.delete(id);
    if (id.endsWith("99")) await pass(6);
  }
  await pass(900);
  expect(messages.map(({ mail }) => [mail.alerts.length, mail.more])).toEqual([
    [0, 0],
    [0, 0],
  ]);
  expect(messages[1]?.mail.storms).toMatchObject([{ firing: 0, cleared: 2_000 }]);
  await pass(1_000);
  expect(messages).toHaveLength(2);
});

test("time in which `devices` cannot be asked counts for no device, and clears no alert", async () => {
  await using fixture = await startEvaluation(offline);
  const { mesh, now, pass, found } = fixture;
  for (const id of ["old", "pump"]) fixture.addDevice(id);
  mesh.offlineSince.set("old", now() - 100_000);
  await pass(30);
  const states = async () => (await found(now())).map((one) => one.split(" ").slice(0, 2).join(" "));
  expect(await states()).toEqual(["old firing"]);
  mesh.devicesAway = true;
  await pass(300);
  // Its connections are read again meanwhile: what connected in that time is not known yet.
  mesh.offlineSince.set("pump", now() - 250_000);
  mesh.devicesAway = false;
  await pass(20);
  expect(await states()).toEqual(["old firing"]);
  await pass(180);
  expect(await states()).toEqual(["old firing", "pump firing"]);
});
