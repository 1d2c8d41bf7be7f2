import { expect, test } from "@jest/globals";
import { type EvaluatedMesh, ruleOn, startEvaluation } from "./evaluation-fixture.ts";

const silent = ruleOn({ kind: "silent", topic: "t/#", longer_than: "PT1M" });

function create({ addDevice }: EvaluatedMesh, id: string, at: number): void {
  addDevice(id, { created_at: new Date(at).toISOString() });
}

/** The devices that fired, with their state, and the seconds from a time until they fired. */
async function fired({ alerts }: EvaluatedMesh, since: number): Promise<string[]> {
  return (await alerts())
    .filter(({ rule_id }) => rule_id === "rule")
    .map(({ device_id, state, fired_at }) => `${device_id} ${state} ${((fired_at ?? 0) - since) / 1_000}`)
    .sort();
}

test("a device fires a minute after its newest record of the topic, and clears with the next one", async () => {
  await using fixture = await startEvaluation(silent);
  const { now, publish, pass } = fixture;
  create(fixture, "pump", now() - 1_000_000);
  publish("pump", "t");
  const begin = now();
  await pass(30);
  // It is of another topic.
  publish("pump", "other");
  await pass(29);
  expect(await fired(fixture, begin)).toEqual([]);
  await pass(3);
  expect(await fired(fixture, begin)).toEqual(["pump firing 60"]);
  publish("pump", "t/x");
  await pass(1);
  expect(await fired(fixture, begin)).toEqual(["pump cleared 60"]);
  await pass(58);
  expect(await fired(fixture, begin)).toEqual(["pump cleared 60"]);
  await pass(5);
  expect(await fired(fixture, begin)).toEqual(["pump firing 122"]);
});

test("a device that has sent nothing fires a minute after its creation, also when its id is used again", async () => {
  await using fixture = await startEvaluation(silent);
  const { now, publish, pass } = fixture;
  await pass(130);
  const begin = now();
  create(fixture, "new", begin);
  publish("old", "t");
  create(fixture, "old", begin + 30_000);
  await pass(59);
  expect(await fired(fixture, begin)).toEqual([]);
  await pass(130);
  expect(await fired(fixture, begin)).toEqual(["new firing 60", "old firing 90"]);
});

test("time in which `data` is away counts for no device", async () => {
  await using fixture = await startEvaluation(silent);
  const { mesh, now, publish, pass } = fixture;
  create(fixture, "pump", now());
  await pass(10);
  publish("pump", "t");
  const begin = now();
  await pass(20);
  mesh.dataAway = true;
  await pass(600);
  mesh.dataAway = false;
  await pass(30);
  expect(await fired(fixture, begin)).toEqual([]);
  await pass(300);
  const [shown = ""] = await fired(fixture, begin);
  // 600 seconds without `data`, and at most 90 in which devices may still be connecting.
  expect(Number(shown.split(" ").at(-1))).toBeGreaterThanOrEqual(655);
  expect(Number(shown.split(" ").at(-1))).toBeLessThanOrEqual(770);
});

test("a replica that takes over finds the same devices", async () => {
  await using fixture = await startEvaluation(silent);
  const { mesh, now, publish, pass } = fixture;
  for (const id of ["fan", "pump"]) create(fixture, id, now());
  publish("fan", "t");
  await pass(40);
  publish("pump", "t");
  const begin = now();
  mesh.leads = false;
  await pass(2);
  mesh.leads = true;
  await pass(50);
  expect(await fired(fixture, begin)).toEqual(["fan firing 20"]);
  await pass(12);
  expect(await fired(fixture, begin)).toEqual(["fan firing 20", "pump firing 60"]);
});
