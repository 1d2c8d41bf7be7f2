import { setTimeout as sleep } from "node:timers/promises";
import { eventually } from "@devmesh/testkit/eventually";
import { startMesh, type TestMesh } from "@devmesh/testkit/mesh";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { startLoad } from "../src/cluster/load.ts";
import { LoadCount } from "../src/cluster/load-count.ts";
import type { ClusterAccess } from "../src/cluster/mesh-access.ts";
import { smoke } from "../src/cluster/smoke.ts";
import { periodTable } from "../src/cluster/table.ts";

describe("with a mesh", () => {
  let mesh: TestMesh;
  let access: ClusterAccess;
  beforeAll(async () => {
    mesh = await startMesh();
    access = { url: mesh.url, mqttUrl: mesh.mqttUrl, masterKey: mesh.masterKey, mqttCertificate: null };
  }, 120_000);
  afterAll(async () => await mesh?.stop(), 60_000);

  /**
   * Returns the last process id. The launcher waits 1, 2 and 4 s before it starts the service again: the last time
   * longer than calls wait.
   */
  async function crashThrice(service: "devices" | "keys"): Promise<number> {
    for (let crash = 1; ; crash++) {
      const pid = await mesh.pidOf(service);
      await mesh.kill(service);
      if (crash === 3) return pid;
      await mesh.restarted(service, pid);
    }
  }

  test("the smoke passes and leaves nothing", async () => {
    const steps: string[] = [];
    await smoke(access, (step) => steps.push(step));
    expect(steps).toHaveLength(10);
    expect((await mesh.http("/api/v2/devices")).json).toEqual([]);
  });

  test("the smoke names the step that fails", async () => {
    await expect(smoke({ ...access, masterKey: `mk_${"0".repeat(32)}` }, () => undefined)).rejects.toThrow(
      /^the master key is accepted: 401/,
    );
  });

  test("the smoke waits while a service cannot be reached yet", async () => {
    await crashThrice("keys");
    await smoke(access, () => undefined);
  }, 120_000);

  test("the load counts what fails while a service is away, and nothing acknowledged is lost", async () => {
    const reported: string[] = [];
    await using load = await startLoad(access, 50, (line) => reported.push(line));
    const quiet = await load.count(() => sleep(1_500));
    const interrupted = await load.count(async () => {
      const pid = await crashThrice("devices");
      await mesh.restarted("devices", pid);
      await sleep(500);
    });
    expect(quiet.requests).toMatchObject({ failed: 0, failures: [] });
    expect(quiet.messages.sent).toBeGreaterThan(5);
    expect(interrupted.requests.failed).toBeGreaterThan(0);
    expect(interrupted.requests.failures.join()).toMatch(/read a device: 503 unavailable/);
    expect(interrupted.requests.longestGapMs).toBeGreaterThan(quiet.requests.longestGapMs);
    expect(reported.length).toBeGreaterThanOrEqual(interrupted.requests.failed);
    expect(reported.join("\n")).toMatch(/^\S+Z {2}read a device: 503 unavailable after \d+\.\d s$/m);
    expect(await load.stop()).toEqual([]);
  }, 120_000);

  test("the load counts calls to a device without a connection apart", async () => {
    await using load = await startLoad(access, 50, () => undefined);
    const [device] = (await mesh.http("/api/v2/devices?limit=1")).json;
    await load.count(async () => {
      await mesh.http(`/api/v2/devices/${device.id}/token`, { method: "POST" });
    });
    const failures: string[] = [];
    await eventually(async () => {
      const { requests } = await load.count(() => sleep(1_000));
      failures.push(...requests.failures);
      return requests.offline > 0;
    });
    expect(failures).toEqual([]);
    expect(await load.stop()).toEqual([]);
  });

  test("the load finds changes of a shadow that are not stored", async () => {
    await using load = await startLoad(access, 50, () => undefined);
    await load.count(() => sleep(1_500));
    const [{ id }] = (await mesh.http("/api/v2/devices?limit=1")).json;
    await mesh.http(`/api/v2/devices/${id}`, { method: "DELETE" });
    expect((await load.stop()).join()).toMatch(new RegExp(`(\\d+) of \\1 changes of the shadow of ${id}`));
  }, 120_000);
});

test("a count has the requests that began in its time, their failures by cause, and gaps between successes", async () => {
  const count = new LoadCount(["read", "write"]);
  count.add("read", Promise.resolve("done"));
  count.add("write", Promise.resolve("offline"));
  count.add("write", Promise.resolve({ failed: "503 unavailable" }));
  count.add("write", Promise.resolve({ failed: "503 unavailable" }));
  count.add(
    "read",
    sleep(300).then(() => "done" as const),
  );
  await sleep(100);
  const figures = await count.end();
  expect(figures).toMatchObject({ sent: 5, offline: 1, failed: 2, failures: ["2 × write: 503 unavailable"] });
  expect(figures.seconds).toBeLessThan(figures.longestGapMs / 1_000 + 1);
  expect(figures.longestGapMs).toBeGreaterThan(250);
});

test("the table has a line for each period and names what failed", () => {
  const requests = {
    seconds: 10,
    sent: 1_000,
    offline: 3,
    failed: 2,
    longestGapMs: 1_260,
    failures: ["2 × list keys: 503"],
  };
  const messages = { seconds: 10, sent: 100, offline: 0, failed: 0, longestGapMs: 110, failures: [] };
  expect(periodTable([["keys", { requests, messages, logins: 1 }]]).split("\n")).toEqual([
    expect.stringMatching(/^\| period \| seconds \| requests a second \|/),
    expect.stringMatching(/^(\| --- )+\|$/),
    "| keys | 10 | 100 | 1000 | 2 | 3 | 1.3 | 100 | 0 | 0.1 | 1 |",
    "",
    "- keys: 2 × list keys: 503",
  ]);
});
