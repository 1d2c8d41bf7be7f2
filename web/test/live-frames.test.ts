import { Alert } from "@devmesh/contracts/model/alert";
import type { Device } from "@devmesh/contracts/model/device";
import { Job } from "@devmesh/contracts/model/job";
import type { Notification } from "@devmesh/contracts/model/notification";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { QueryClient, QueryObserver } from "@tanstack/react-query";
import { queryKeys } from "../src/api/query-keys.ts";
import { applyFrames } from "../src/app/apply-frames.ts";
import type { DevicePages } from "../src/features/devices/shared/device-lists.ts";
import { rowOf } from "../src/features/devices/shared/device-row.ts";
import { applyAroundReads } from "../src/live/frames-and-reads.ts";
import { deviceOf } from "./devices.ts";

const at = "2026-02-01T00:00:00.000Z";
const frame = (name: string, id: string, data: unknown = {}) =>
  ({ seq: 1, id, name, data, timestamp: at }) as Notification;
const withVersion = (id: string, version: number): Device => {
  const device = deviceOf(id);
  return { ...device, shadow: { ...device.shadow, version } };
};

describe("frames of the stream", () => {
  let queries: QueryClient;
  beforeEach(() => {
    queries = new QueryClient();
  });
  afterEach(() => queries.clear());

  const held = (id: string) => queries.getQueryData<Device>(queryKeys.device(id));

  test("change a device that a view has read, and no other", () => {
    queries.setQueryData(queryKeys.device("pump"), withVersion("pump", 3));
    applyFrames(queries, [
      frame("updated", "pump", withVersion("pump", 4)),
      frame("updated", "lamp", withVersion("lamp", 1)),
      frame("online", "pump"),
    ]);
    expect(held("pump")).toMatchObject({ online: true, last_seen: at, shadow: { version: 4 } });
    expect(held("lamp")).toBeUndefined();
  });

  test("undo no write whose answer came before them, but show a device that was made anew", () => {
    queries.setQueryData(queryKeys.device("pump"), withVersion("pump", 9));
    applyFrames(queries, [frame("updated", "pump", withVersion("pump", 8))]);
    expect(held("pump")?.shadow.version).toBe(9);
    applyFrames(queries, [frame("created", "pump", withVersion("pump", 1))]);
    expect(held("pump")?.shadow.version).toBe(1);
  });

  test("put an alert into its page, and make its lists and the counts of what fires be read again", () => {
    const alert = Alert.parse(Alert.meta()?.example);
    for (const key of [queryKeys.alerts, queryKeys.alertSummary]) queries.setQueryData(key, []);
    applyFrames(queries, [frame("alert", "pump", { ...alert, note: "seen" })]);
    expect(queries.getQueryData<Alert>(queryKeys.alert(alert.id))?.note).toBe("seen");
    for (const key of [queryKeys.alerts, queryKeys.alertSummary])
      expect(queries.getQueryState(key)?.isInvalidated).toBe(true);
  });

  test("that come while a page is read are not undone by what it brings", async () => {
    const queryKey = [...queryKeys.deviceLists, { condition: {}, pointers: [], order: "desc" }];
    const page = (id: string, next: string | null) => ({ rows: [rowOf(deviceOf(id))], next, total: null });
    const { take, stop } = applyAroundReads(queries, (frames) => applyFrames(queries, frames));
    queries.setQueryData<DevicePages>(queryKey, { pages: [page("a", "1")], pageParams: [null] });
    let answer = (_pages: DevicePages) => {};
    const before = queries.getQueryData<DevicePages>(queryKey);
    const reading = queries.fetchQuery({
      queryKey,
      queryFn: () => new Promise<DevicePages>((resolve) => (answer = resolve)),
    });
    take([frame("online", "a")]);
    answer({ pages: [...(before?.pages ?? []), page("b", null)], pageParams: [null, "1"] });
    await reading;
    const rows = queries.getQueryData<DevicePages>(queryKey)?.pages.flatMap((each) => each.rows);
    expect(rows?.map(({ id, online }) => [id, online])).toEqual([
      ["a", true],
      ["b", false],
    ]);
    stop();
  });

  test("that end a job while it is read are not undone by what was read before", async () => {
    const job = Job.parse(Job.meta()?.example);
    const { take, stop } = applyAroundReads(queries, (frames) => applyFrames(queries, frames));
    let answer = (_job: Job) => {};
    const queryKey = queryKeys.job(job.id);
    const reading = queries.fetchQuery({
      queryKey,
      queryFn: () => new Promise<Job>((resolve) => (answer = resolve)),
    });
    take([frame("job", job.id, { ...job, state: "done" })]);
    answer({ ...job, state: "planning" });
    await reading;
    expect(queries.getQueryData<Job>(queryKey)?.state).toBe("done");
    stop();
  });

  test("that came during a read make it be read again once, not for as long as others are read", async () => {
    let reads = 0;
    const { take, stop } = applyAroundReads(queries, (frames) => applyFrames(queries, frames));
    const ended = new Promise<void>((resolve) => {
      queries.getQueryCache().subscribe(({ query }) => {
        if (reads === 2 && query.state.fetchStatus === "idle") resolve();
      });
    });
    let answer = (_keys: readonly string[]) => {};
    const observer = new QueryObserver(queries, {
      queryKey: queryKeys.keys,
      queryFn: () => {
        reads += 1;
        return reads > 1 ? [] : new Promise<readonly string[]>((resolve) => (answer = resolve));
      },
    });
    const leave = observer.subscribe(() => {});
    void queries.prefetchQuery({ queryKey: queryKeys.deviceLists, queryFn: () => new Promise(() => {}) });
    take([frame("keys", "k1")]);
    answer([]);
    await ended;
    await new Promise((resolve) => setImmediate(resolve));
    expect(reads).toBe(2);
    leave();
    stop();
  });
});
