import { Diagnosis } from "@devmesh/contracts/model/diagnostics";
import { fakeDevice } from "@devmesh/testkit/fakes";
import { expect, test } from "@jest/globals";
import { type EvaluatedMesh, ruleOn, startEvaluation } from "./evaluation-fixture.ts";

test("a rule on the shadow fires with a change, and clears with the next one", async () => {
  await using mesh = await startEvaluation(
    ruleOn({
      kind: "shadow",
      pointer: "/state/reported/t",
      is: ">",
      than: 5,
    }),
  );
  await mesh.pass(2);
  const begin = mesh.now();
  mesh.change("pump", { reported: { t: 5 } });
  await mesh.pass(1);
  expect(await mesh.found(begin)).toEqual([]);
  mesh.change("pump", { reported: { t: 6 } });
  await mesh.pass(1);
  expect(await mesh.found(begin)).toEqual(["pump firing 1"]);
  expect(await mesh.try(0)).toMatchObject({ matching: 1, firings: [{ device_id: "pump", value: 6 }] });
  mesh.change("pump", { reported: {} });
  await mesh.pass(1);
  expect(await mesh.found(begin)).toEqual(["pump cleared 1 2 condition"]);
});

test("what changed unseen is found after a gap, and at the latest after 10 minutes", async () => {
  await using mesh = await startEvaluation(
    ruleOn({
      kind: "shadow",
      pointer: "/tags/on",
      is: "==",
      than: true,
    }),
  );
  await mesh.pass(2);
  const begin = mesh.now();
  const shadow = { ...fakeDevice("pump").shadow, tags: { on: true }, timestamp: begin };
  mesh.mesh.devices.set("pump", fakeDevice("pump", { shadow }));
  await mesh.pass(10);
  expect(await mesh.found(begin)).toEqual([]);
  mesh.gap();
  await mesh.pass(1);
  expect(await mesh.found(begin)).toEqual(["pump firing 0"]);
  mesh.mesh.devices.set("pump", fakeDevice("pump"));
  await mesh.pass(598);
  expect(await mesh.found(begin)).toEqual(["pump firing 0"]);
  await mesh.pass(3);
  expect(await mesh.found(begin)).toMatchObject([expect.stringMatching(/^pump cleared 0 .* condition$/)]);
});

test("a delta fires once it has not been empty for that long, also after a restart", async () => {
  await using mesh = await startEvaluation(ruleOn({ kind: "not_taken", longer_than: "PT1M" }));
  await mesh.pass(1);
  const begin = mesh.now();
  mesh.change("pump", { delta: { on: true } });
  await mesh.pass(30);
  // Another difference does not begin the time again.
  mesh.change("pump", { delta: { on: true, speed: 2 } });
  mesh.restart();
  await mesh.pass(29);
  expect(await mesh.found(begin)).toEqual([]);
  await mesh.pass(1);
  expect(await mesh.found(begin)).toEqual(["pump firing 60"]);
  mesh.change("pump", {});
  await mesh.pass(1);
  expect(await mesh.found(begin)).toEqual(["pump cleared 60 60 condition"]);
});

test("a deleted device clears its alert at once, and the alert says so", async () => {
  await using mesh = await startEvaluation(ruleOn({ kind: "shadow", pointer: "/tags/a", is: "!=", than: 1 }));
  await mesh.pass(1);
  const begin = mesh.now();
  const shadow = { ...fakeDevice("pump").shadow, tags: { a: 2 }, timestamp: begin };
  mesh.mesh.devices.set("pump", fakeDevice("pump", { shadow }));
  mesh.publishEvent("updated", "pump", { device: fakeDevice("pump", { shadow }) });
  await mesh.pass(1);
  mesh.deleteDevice("pump");
  await mesh.pass(1);
  expect(await mesh.found(begin)).toEqual(["pump cleared 0 2 device_deleted"]);
});

const refused = (mesh: EvaluatedMesh, id: string) =>
  mesh.publishEvent("diagnosed", id, { ...(Diagnosis.meta()?.example as object), name: "login_refused" });

test("a rule on events fires with the event that makes them enough, and clears when they are too few", async () => {
  const when = { kind: "event", name: "login_refused", count: 3, within: "PT1M" } as const;
  await using mesh = await startEvaluation(ruleOn(when));
  for (const id of ["pump", "fan"]) mesh.addDevice(id);
  await mesh.pass(3);
  const begin = mesh.now();
  for (const id of ["pump", "fan", "stranger", "pump"]) refused(mesh, id);
  await mesh.pass(30);
  for (const id of ["pump", "fan", "stranger", "stranger"]) refused(mesh, id);
  await mesh.pass(1);
  expect(await mesh.found(begin)).toEqual(["pump firing 30"]);
  const [firing] = (await mesh.try(3_600_000)).firings;
  expect(firing).toMatchObject({ device_id: "pump", until: null, value: 3 });
  await mesh.pass(29);
  expect(await mesh.found(begin)).toEqual(["pump firing 30"]);
  await mesh.pass(1);
  expect(await mesh.found(begin)).toEqual(["pump cleared 30 60 condition"]);
});

test("a replica that takes over counts what came before, and what came meanwhile", async () => {
  const when = { kind: "event", name: "login_refused", count: 2, within: "PT10S" } as const;
  await using mesh = await startEvaluation(ruleOn(when));
  mesh.addDevice("pump");
  await mesh.pass(3);
  const begin = mesh.now();
  refused(mesh, "pump");
  await mesh.pass(2);
  mesh.restart();
  refused(mesh, "pump");
  await mesh.pass(3);
  expect(await mesh.found(begin)).toEqual(["pump firing 2"]);
  await mesh.pass(20);
  expect(await mesh.found(begin)).toEqual(["pump cleared 2 10 condition"]);
  // Counting the same events again changes nothing.
  mesh.restart();
  await mesh.pass(3);
  expect(await mesh.found(begin)).toEqual(["pump cleared 2 10 condition"]);
  expect((await mesh.alerts()).map(({ flaps }) => flaps)).toEqual([0]);
});

test("a device that is created with such a shadow fires at once", async () => {
  await using mesh = await startEvaluation(ruleOn({ kind: "shadow", pointer: "/tags/a", is: "==", than: 1 }));
  await mesh.pass(1);
  const begin = mesh.now();
  const shadow = { ...fakeDevice("pump").shadow, tags: { a: 1 }, timestamp: begin };
  mesh.mesh.devices.set("pump", fakeDevice("pump", { shadow }));
  mesh.publishEvent("created", "pump", { device: fakeDevice("pump", { shadow }) });
  await mesh.pass(1);
  expect(await mesh.found(begin)).toEqual(["pump firing 0"]);
});
