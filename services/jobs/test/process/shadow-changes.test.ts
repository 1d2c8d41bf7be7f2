import { afterAll, afterEach, beforeAll, expect, test } from "@jest/globals";
import { describeOverStores } from "./describe-over-stores.ts";
import type { JobsFixture } from "./jobs-fixture.ts";

type Asked = Parameters<JobsFixture["createJob"]>[0];

const eco = { kind: "shadow", patch: { state: { desired: { app: { mode: "eco" } } } } } as const;
const never = () => new Promise<never>(() => undefined);

describeOverStores("changes of shadows by jobs", (start) => {
  let mesh: JobsFixture;
  beforeAll(async () => {
    mesh = await start();
  });
  afterEach(() => mesh.clear());
  afterAll(async () => await mesh?.[Symbol.asyncDispose]());

  const create = async (action: Asked["action"], target: Asked["target"] = { where: {} }) =>
    (await mesh.createJob({ target, action })).id;

  test("a change of the shadow needs nobody awake, and succeeds when the device reports", async () => {
    const [asleep, same] = [mesh.add("asleep"), mesh.add("same")];
    same.reported = { app: { mode: "eco" } };
    const id = await create(eco, { ids: ["asleep", "same"] });
    await mesh.counted(id, { sent: 1, succeeded: 1 });
    expect(asleep.desired).toEqual({ app: { mode: "eco" } });
    expect(await mesh.listJobExecutions(id, { state: "sent" })).toMatchObject([{ stage: "reporting" }]);
    await mesh.report("asleep", { app: { mode: "eco" } });
    await mesh.jobBecomes(id, "done");
    expect((await mesh.readJob(id)).counts).toMatchObject({ succeeded: 2 });
  });

  test("a change of the shadow that is not reported in time ends so, and one that is not awaited succeeds", async () => {
    mesh.add("asleep");
    const late = await create({ ...eco, timeout: "PT1S" });
    expect((await mesh.jobBecomes(late, "done")).counts).toMatchObject({ timed_out: 1 });
    expect(await mesh.listJobExecutions(late)).toMatchObject([{ reason: "not_reported", attempts: 1 }]);
    const stored = await create({ ...eco, wait_for_report: false });
    expect((await mesh.jobBecomes(stored, "done")).counts).toMatchObject({ succeeded: 1 });
  });

  test("a change that its leader did not make before it was killed is made again", async () => {
    const pump = mesh.add("pump");
    pump.patch = never;
    const id = await create({ ...eco, wait_for_report: false });
    await mesh.counted(id, { sent: 1 });
    await mesh.service.end("SIGKILL");
    delete pump.patch;
    await mesh.restart();
    expect((await mesh.jobBecomes(id, "done")).counts).toMatchObject({ succeeded: 1 });
    expect(pump.desired).toEqual({ app: { mode: "eco" } });
  });
});
