import { eventually } from "@devmesh/testkit/eventually";
import type { TestMesh } from "@devmesh/testkit/mesh";
import { expect, test } from "@jest/globals";
import { restClient } from "../../src/rest-client.ts";
import { asMaster, enrolDevice } from "../../src/tenant.ts";

/** `KEY_CACHE_MS` of the test, in milliseconds. */
export const cacheMs = 5_000;
/** Less than the 3 s that a request would wait for `keys`, in milliseconds. */
const waitMs = 2_500;

/** `keys` hangs in a mesh with that cache. */
export function keysStopped(shared: () => TestMesh): void {
  test("while keys hangs, keys in use go on after their time in the cache, and no request waits for it", async () => {
    const mesh = shared();
    const device = await enrolDevice(mesh, "pump");
    const { json: unused } = await asMaster(mesh).post("keys", {});
    const master = restClient(mesh.url, (await asMaster(mesh).post("keys", {})).json.key);
    const app = device.asPublicKey;
    const read = async () => [
      (await master.get("devices/pump")).status,
      (await app.get("m/device")).status,
      (await app.post("m/device", { shadow: {} })).status,
    ];
    expect(await read()).toEqual([200, 200, 200]);

    await mesh.kill("keys", "SIGSTOP");
    const statuses = new Set<number>();
    const pastItsTime = performance.now() + cacheMs;
    // What a busy machine adds to some is no waiting: requests that wait do so each time.
    await eventually(
      async () => {
        const before = performance.now();
        for (const status of await read()) statuses.add(status);
        return before > pastItsTime && performance.now() - before < waitMs;
      },
      { everyMs: 100 },
    );
    expect([...statuses]).toEqual([200]);
    const refused = await restClient(mesh.url, unused.key).get("devices/pump");
    expect([refused.status, refused.json]).toMatchObject([503, { reason: "unavailable", service: "keys" }]);

    await mesh.kill("keys", "SIGCONT");
    await eventually(async () => (await restClient(mesh.url, unused.key).get("devices/pump")).status === 200);
    await asMaster(mesh).delete(`keys/${unused.id}`);
    await eventually(async () => (await restClient(mesh.url, unused.key).get("devices/pump")).status === 401);
  });
}
