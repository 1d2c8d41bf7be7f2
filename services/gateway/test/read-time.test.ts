import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { type Fixture, startFixture } from "./gateway-fixture.ts";

let mesh: Fixture;
beforeAll(async () => {
  mesh = await startFixture();
});
afterAll(async () => mesh[Symbol.asyncDispose]());

/** The most time that a read gives its service, in milliseconds. */
const readMs = 5_000;

/** What a fake is called with, as far as this test goes. */
type FakeMethod = (input: unknown, call: { readonly deadline: { remainingMs(): number } }) => unknown;

test("a read gives its service five seconds at most", async () => {
  const times: Record<string, number> = {};
  for (const service of ["devices", "data", "jobs", "alerts", "webhooks"] as const) {
    const fake = mesh.fakes[service] as unknown as Record<string, FakeMethod>;
    for (const [method, answer] of Object.entries(fake))
      fake[method] = (input, call) => {
        const name = `${service}.${method}`;
        times[name] = Math.max(times[name] ?? 0, call.deadline.remainingMs());
        return answer(input, call);
      };
  }
  for (const path of [
    "devices",
    "devices?limit=1",
    "devices?where=label:a&limit=1",
    "devices/pump",
    "devices/pump/latest",
    "devices/pump/series",
    "devices/pump/diagnostics",
    "devices/pump/executions",
    "device_facets?facets=version",
    "diagnostics",
    "data?limit=1",
    "data?device_id=pump&limit=1",
    "jobs?limit=1",
    "firmware",
    "alerts?limit=1",
    "rules",
    "channels",
    "silences",
    "webhooks",
    "views",
    "boards",
  ])
    expect([path, (await mesh.fetch(`/api/v2/${path}`)).status]).toEqual([path, 200]);
  expect(Object.keys(times)).toContain("devices.facetDevices");
  expect(Object.entries(times).filter(([, ms]) => ms > readMs)).toEqual([]);
});
