import { type JobInput, type JobPatch, jobLimits } from "@devmesh/contracts/model/job";
import { eventually } from "@devmesh/testkit/eventually";
import { afterAll, afterEach, beforeAll, expect, test } from "@jest/globals";
import { describeOverStores } from "./describe-over-stores.ts";
import { answered, type JobsFixture, reasonOf } from "./jobs-fixture.ts";

type Asked = Parameters<JobsFixture["createJob"]>[0];

const echo = { kind: "rpc", func: "Echo", timeout: 5_000 } as const;
const eco = { kind: "shadow", patch: { state: { desired: { app: { mode: "eco" } } } } } as const;
const never = () => new Promise<never>(() => undefined);

describeOverStores("jobs", (start) => {
  let mesh: JobsFixture;
  beforeAll(async () => {
    mesh = await start();
  });
  afterEach(() => mesh.clear());
  afterAll(async () => await mesh?.[Symbol.asyncDispose]());

  const listening = (count: number, more: Parameters<JobsFixture["add"]>[1] = {}) =>
    Array.from({ length: count }, (_, at) => mesh.add(`d${at}`, { online: true, listens: true, ...more }));
  const create = async (more: Partial<Asked> = {}) =>
    (await mesh.createJob({ target: { where: {} }, action: echo, ...more })).id;
  const change = (id: string, patch: JobPatch) => mesh.changeJob(id, patch);

  test("a job calls each of its devices once, those that sleep when they wake, and unknown ids fail", async () => {
    const devices = listening(5);
    const sleeper = mesh.add("sleeper");
    const ids = [...devices.map((_, at) => `d${at}`), "sleeper", "nobody", "d0"];
    const id = await create({ target: { ids }, name: "Greet" });
    await mesh.counted(id, { succeeded: 5, failed: 1, queued: 1 });
    await mesh.connect("sleeper");
    expect(await mesh.jobBecomes(id, "done")).toMatchObject({
      name: "Greet",
      target: null,
      devices: 7,
      counts: { succeeded: 6, failed: 1 },
      log: [{ what: "created" }, { what: "done", by: null }],
    });
    expect([...devices, sleeper].map(({ received }) => received.length)).toEqual([1, 1, 1, 1, 1, 1]);
    const failed = await mesh.listJobExecutions(id, { state: "failed" });
    expect(failed).toMatchObject([
      { device_id: "nobody", reason: "device_not_found", job_id: id, attempts: 0 },
    ]);
    expect(await mesh.listJobExecutions(id)).toHaveLength(7);
  });

  test("a job goes on after its leader was killed, and calls nobody twice", async () => {
    const gate = Promise.withResolvers<typeof answered>();
    const devices = listening(30, { answer: () => gate.promise });
    const id = await create({ action: { ...echo, timeout: 100 }, rollout: { concurrency: 10 } });
    await eventually(() => devices.filter(({ received }) => received.length > 0).length === 10);
    await mesh.service.end("SIGKILL");
    gate.resolve(answered);
    await mesh.restart();
    const { counts } = await mesh.jobBecomes(id, "done");
    expect([counts.succeeded, counts.timed_out]).toEqual([20, 10]);
    expect(devices.map(({ received }) => received.length)).toEqual(devices.map(() => 1));
  });

  test("stages let go as many as they say, and the next one begins when they have succeeded", async () => {
    const gate = Promise.withResolvers<typeof answered>();
    const devices = listening(20, { answer: () => gate.promise });
    const id = await create({ rollout: { stages: [{ percent: 10 }, { percent: 50, hold: true }] } });
    const calls = () => devices.filter(({ received }) => received.length > 0).length;
    await mesh.counted(id, { sent: 2, queued: 18 });
    expect([calls(), (await mesh.readJob(id)).stage]).toEqual([2, 1]);
    gate.resolve(answered);
    const held = await mesh.jobBecomes(id, "paused");
    expect([calls(), held.why, held.released, held.stage]).toEqual([10, "stage_hold", 10, 2]);
    await change(id, { proceed: true });
    await mesh.jobBecomes(id, "done");
    expect(calls()).toBe(20);
  });

  test("a job pauses where too much fails; what was sent ends, and a person cancels the rest", async () => {
    const bad = { sent: true, outcome: "error", error: { code: 500, message: "hot" } } as const;
    const devices = listening(40, { answer: () => bad });
    const id = await create({
      rollout: { concurrency: 5 },
      pause_at: { failed_percent: 50, of_at_least: 5 },
    });
    const paused = await mesh.jobBecomes(id, "paused");
    expect(paused).toMatchObject({ why: "failed_percent", counts: { failed: 5, queued: 35 } });
    expect(devices.filter(({ received }) => received.length > 0)).toHaveLength(5);
    await change(id, { state: "cancelled" });
    await mesh.counted(id, { failed: 5, cancelled: 35 });
    expect(await reasonOf(change(id, { state: "running" }))).toBe("job_ended");
    const [cancelled] = await mesh.listJobExecutions(id, { state: "cancelled" });
    expect(cancelled).toMatchObject({ reason: "job_cancelled", attempts: 0 });
    const again = await create({ target: { of_job: id, states: ["failed"] } });
    expect((await mesh.jobBecomes(again, "done")).devices).toBe(5);
  });

  test("a paused job sends nothing until it is resumed, and holds up no call", async () => {
    const id = await create();
    await change(id, { state: "paused" });
    const [device] = listening(1);
    // A job that was paused while it was planned plans on once it runs.
    await mesh.connect("d0");
    const call = await mesh.create("d0", { func: "Call" });
    await eventually(async () => (await mesh.read(call.id)).state === "succeeded");
    expect(device?.received).toEqual(["Call"]);
    await change(id, { state: "running" });
    await mesh.jobBecomes(id, "done");
  });

  test("by force a cancelled job ends what was sent", async () => {
    listening(2, { answer: never });
    const id = await create();
    await mesh.counted(id, { sent: 2 });
    await change(id, { state: "cancelled" });
    expect((await mesh.readJob(id)).counts).toMatchObject({ sent: 2, cancelled: 0 });
    const other = await create();
    await mesh.counted(other, { queued: 2 });
    await change(other, { state: "cancelled", force: true });
    await mesh.counted(other, { cancelled: 2 });
  });

  test("a device that fails is tried again where the job says so", async () => {
    const answers = [
      { sent: true, outcome: "error", error: { code: 1, message: "busy" } } as const,
      answered,
    ];
    const [device] = listening(1, { answer: () => answers.shift() ?? answered });
    const id = await create({ retry: { attempts: 2, on: ["failed"], after: "PT1S" } });
    await mesh.jobBecomes(id, "done");
    expect(device?.received).toHaveLength(2);
    expect(await mesh.listJobExecutions(id)).toMatchObject([{ state: "succeeded", attempts: 2 }]);
  });

  test("a continuous job takes a new device in once, and ends by cancelling alone", async () => {
    const [first] = listening(1);
    const id = await create({ continuous: true });
    await mesh.counted(id, { succeeded: 1 });
    const late = mesh.add("late");
    await mesh.connect("late");
    await mesh.counted(id, { succeeded: 2 });
    await mesh.connect("late");
    await mesh.connect("d0");
    expect(await mesh.readJob(id)).toMatchObject({ state: "running", devices: 2 });
    expect([first?.received.length, late.received.length]).toEqual([1, 1]);
    await change(id, { state: "cancelled" });
  });

  test("a job that hits nobody says so, and a trial counts what a job would have", async () => {
    const before = await mesh.listJobs();
    expect(await mesh.jobBecomes(await create(), "done")).toMatchObject({ why: "no_devices", devices: 0 });
    listening(3);
    mesh.add("asleep");
    expect(await mesh.tryTarget({ where: {} })).toMatchObject({ devices: 4, online: 3, not_found: 0 });
    const trial = await mesh.tryTarget({ ids: ["d0", "nobody", "asleep", "d0"] });
    expect(trial).toEqual({
      devices: 3,
      online: 1,
      not_found: 1,
      not_eligible: 0,
      sample: ["asleep", "d0"],
    });
    expect(await mesh.listJobs()).toHaveLength(before.length + 1);
  });

  test("a job whose devices cannot be found delays no other, and is planned on", async () => {
    const id = await create({ target: { where: { labels: { all: ["unreadable"] } } } });
    listening(1);
    await mesh.jobBecomes(await create(), "done");
    expect(await mesh.readJob(id)).toMatchObject({ state: "planning", devices: 0 });
  });

  test("bad input is refused with its place, and nothing is stored", async () => {
    const before = await mesh.listJobs();
    const deep = { state: { desired: JSON.parse('{"a":{"__proto__":1}}') } };
    const action = { kind: "shadow", patch: deep } as unknown as JobInput["action"];
    await expect(create({ action })).rejects.toMatchObject({
      reason: "job_invalid",
      details: [{ pointer: "/action/patch/state/desired/a/__proto__" }],
    });
    for (const params of [5, "abc", true, null])
      await expect(create({ action: { kind: "rpc", func: "Echo", params } })).rejects.toMatchObject({
        reason: "job_invalid",
        details: [{ pointer: "/action/params" }],
      });
    await expect(create({ target: { of_job: "none", states: ["failed"] } })).rejects.toMatchObject({
      reason: "job_invalid",
      details: [{ pointer: "/target/of_job" }],
    });
    expect(await mesh.listJobs()).toEqual(before);
  });

  test("twenty continuous jobs are open at most", async () => {
    const asked = { continuous: true, action: { ...eco, patch: { tags: { a: 1 } } } };
    for (let at = 0; at < jobLimits.continuous; at++) await create(asked);
    expect(await reasonOf(create(asked))).toBe("too_many_jobs");
  });

  test("a restored store that is held pauses its jobs", async () => {
    const pump = mesh.add("pump");
    const id = await create();
    await mesh.counted(id, { queued: 1 });
    await mesh.restart({ JOBS_HOLD: "true" }, "SIGTERM");
    await mesh.connect("pump");
    expect(await mesh.readJob(id)).toMatchObject({ state: "paused", why: "by_request" });
    expect([pump.received, (await mesh.listJobExecutions(id)).map(({ state }) => state)]).toEqual([
      [],
      ["queued"],
    ]);
  });

  test("a deleted device counts as ended", async () => {
    mesh.add("pump");
    const id = await create();
    await mesh.counted(id, { queued: 1 });
    mesh.devices.delete("pump");
    await mesh.drop("pump");
    expect((await mesh.jobBecomes(id, "done")).counts).toMatchObject({ cancelled: 1 });
    expect(await mesh.listJobExecutions(id)).toMatchObject([{ reason: "device_deleted" }]);
  });
});
