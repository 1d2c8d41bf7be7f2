import { eventually } from "@devmesh/testkit/eventually";
import { afterAll, afterEach, beforeAll, expect, test } from "@jest/globals";
import { describeOverStores } from "./describe-over-stores.ts";
import { answered, type JobsFixture, reasonOf } from "./jobs-fixture.ts";

describeOverStores("calls that wait,", (start) => {
  let mesh: JobsFixture;
  beforeAll(async () => {
    mesh = await start();
  });
  afterEach(() => mesh.clear());
  afterAll(async () => await mesh?.[Symbol.asyncDispose]());
  const state = async (id: string) => (await mesh.read(id)).state;
  const becomes = (id: string, wanted: string) => eventually(async () => (await state(id)) === wanted);

  test("a call waits until its device connects, also over the end of the service, and runs once", async () => {
    const pump = mesh.add("pump");
    const { id } = await mesh.create("pump", { params: [1] });
    await mesh.restart();
    expect(await mesh.read(id)).toMatchObject({ state: "queued", attempts: 0, sent_at: null });
    await mesh.connect("pump");
    await becomes(id, "succeeded");
    expect(await mesh.read(id)).toMatchObject({ attempts: 1, result: "ok", reason: null });
    expect(pump.received).toEqual(["Echo"]);
  });

  test("a call to a device that listens is sent at once", async () => {
    mesh.add("pump", { online: true, listens: true });
    await becomes((await mesh.create("pump")).id, "succeeded");
  });

  test("a device that subscribes late, or whose event was lost, is sent its call once", async () => {
    const pump = mesh.add("pump", { online: true });
    const fan = mesh.add("fan");
    const [late, lost] = [await mesh.create("pump"), await mesh.create("fan")];
    const tries = () => mesh.service.metric('devmesh_jobs_sends_total{outcome="nobody_listens"}');
    const before = await tries();
    await mesh.publishOnline("pump");
    await eventually(async () => (await tries()) >= before + 2);
    // Each try is stored as sent until the broker reports that nobody listens.
    await eventually(async () => (await mesh.read(late.id)).attempts === 0);
    pump.listens = true;
    Object.assign(fan, { online: true, listens: true });
    await becomes(late.id, "succeeded");
    await becomes(lost.id, "succeeded");
    expect([pump.received, fan.received]).toEqual([["Echo"], ["Echo"]]);
  });

  test("a device gets one call at a time, the oldest first, and a slow device delays no other", async () => {
    const gate = Promise.withResolvers<typeof answered>();
    const pump = mesh.add("pump", { answer: (func) => (func === "One" ? gate.promise : answered) });
    const created = [];
    for (const func of ["One", "Two", "Three"]) created.push(await mesh.create("pump", { func }));
    mesh.add("fan", { online: true, listens: true });
    await mesh.connect("pump");
    await eventually(() => pump.received.length === 1);
    await becomes((await mesh.create("fan")).id, "succeeded");
    expect(pump.received).toEqual(["One"]);
    gate.resolve(answered);
    for (const { id } of created) await becomes(id, "succeeded");
    expect(pump.received).toEqual(["One", "Two", "Three"]);
  });

  test("a killed sender leaves a sent call that is not sent again, and ends it as unknown", async () => {
    const never = new Promise<never>(() => undefined);
    const pump = mesh.add("pump", { online: true, listens: true, answer: () => never });
    const { id } = await mesh.create("pump", { timeout_ms: 100 });
    await eventually(() => pump.received.length === 1);
    await mesh.restart();
    // On a slow machine its time may be over.
    expect(["sent", "timed_out"]).toContain(await state(id));
    await becomes(id, "timed_out");
    expect(await mesh.read(id)).toMatchObject({ reason: "no_answer", attempts: 1 });
    expect(pump.received).toEqual(["Echo"]);
  });

  test("what was not sent is cancelled or expires; what was sent is cancelled by force alone", async () => {
    const never = new Promise<never>(() => undefined);
    const pump = mesh.add("pump", { answer: () => never });
    const [queued, short] = [await mesh.create("pump"), await mesh.create("pump", { wait_ms: 1_000 })];
    expect(await mesh.cancel(queued.id)).toMatchObject({
      state: "cancelled",
      reason: "by_request",
      attempts: 0,
    });
    await becomes(short.id, "expired");
    expect(await reasonOf(mesh.cancel(short.id))).toBe("execution_ended");
    const { id } = await mesh.create("pump");
    await mesh.connect("pump");
    await eventually(() => pump.received.length === 1);
    expect(await reasonOf(mesh.cancel(id))).toBe("execution_sent");
    expect(await mesh.cancel(id, true)).toMatchObject({ state: "cancelled", attempts: 1 });
  });

  test("a call is cancelled, though its device is being tried and nobody listens", async () => {
    const decision = Promise.withResolvers<void>();
    const pump = mesh.add("pump", { online: true, undecided: decision.promise });
    const { id } = await mesh.create("pump");
    await becomes(id, "sent");
    const cancelled = mesh.cancel(id);
    decision.resolve();
    expect(await cancelled).toMatchObject({ state: "cancelled", reason: "by_request", attempts: 0 });
    expect(pump.received).toEqual([]);
  });

  test("of cancelling and sending at the same moment one wins, and what was cancelled was not sent", async () => {
    const pump = mesh.add("pump", { online: true, listens: true });
    for (let round = 0; round < 20; round++) {
      const { id } = await mesh.create("pump", { func: `F${round}` });
      const cancelled = (await reasonOf(mesh.cancel(id))) === "answered";
      await eventually(async () => ["cancelled", "succeeded"].includes(await state(id)));
      expect([await state(id), pump.received.includes(`F${round}`)]).toEqual(
        cancelled ? ["cancelled", false] : ["succeeded", true],
      );
    }
  });

  test("what waits for a deleted device never reaches a later one of that id", async () => {
    mesh.add("pump");
    const { id } = await mesh.create("pump");
    mesh.devices.delete("pump");
    await mesh.drop("pump");
    const successor = mesh.add("pump");
    await mesh.connect("pump");
    await becomes((await mesh.create("pump", { func: "New" })).id, "succeeded");
    expect(await mesh.read(id)).toMatchObject({ state: "cancelled", reason: "device_deleted" });
    expect(successor.received).toEqual(["New"]);
  });

  test("a public key's call is sent only if the ACL lists its function then", async () => {
    const pump = mesh.add("pump", { permitted: ["Open"] });
    const created_by = { kind: "public_key", key_id: "p" } as const;
    const [open, shut] = [
      await mesh.create("pump", { func: "Open", created_by }),
      await mesh.create("pump", { func: "Shut", created_by }),
    ];
    await mesh.connect("pump");
    await becomes(open.id, "succeeded");
    await becomes(shut.id, "failed");
    expect(await mesh.read(shut.id)).toMatchObject({ reason: "rpc_not_permitted", attempts: 0 });
    expect(pump.received).toEqual(["Open"]);
  });

  test("a restored store that is held sends nothing", async () => {
    const pump = mesh.add("pump");
    const { id } = await mesh.create("pump");
    await mesh.restart({ JOBS_HOLD: "true" }, "SIGTERM");
    await mesh.connect("pump");
    expect(await mesh.read(id)).toMatchObject({ state: "cancelled", attempts: 0 });
    expect(pump.received).toEqual([]);
  });
});
