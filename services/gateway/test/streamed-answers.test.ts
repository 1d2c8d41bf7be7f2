import { api, type Operation } from "@devmesh/contracts/rest/api";
import type { RouteDeclaration } from "@devmesh/contracts/rest/route";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { endedTicket, type secrets } from "./fakes.ts";
import { type Fixture, startFixture } from "./gateway-fixture.ts";

let mesh: Fixture;
beforeAll(async () => {
  mesh = await startFixture();
  const { data } = mesh.fakes;
  const { queryRecords, readSeries } = data;
  // As `data` checks its callers.
  data.queryRecords = async (query, context) =>
    "device_id" in query.principal && (query.device_id ?? "pump") !== query.principal.device_id
      ? context.fail("device_mismatch")
      : queryRecords(query, context);
  data.readSeries = async (query, context) =>
    "device_id" in query.principal && query.device_id !== query.principal.device_id
      ? context.fail("device_mismatch")
      : readSeries(query, context);
});
afterAll(async () => mesh[Symbol.asyncDispose]());

interface Refused {
  readonly path: string;
  readonly key: keyof typeof secrets;
  readonly status: number;
  readonly reason: string;
}

/** A request without a right that the route needs, of each route whose answer may be streamed. */
const refused: Partial<Record<Operation, readonly Refused[]>> = {
  queryRecords: [
    { path: "/api/v2/data?device_id=fan", key: "device_key", status: 403, reason: "device_mismatch" },
  ],
  readSeries: ["fan", "pump,fan", "fan,pump", "pump,pump,pump,pump,pump,fan"].map((ids) => ({
    path: `/api/v2/series?topic=temp&device_id=${ids}`,
    key: "device_key",
    status: 403,
    reason: "device_mismatch",
  })),
  runNamedSeries: [
    {
      path: "/api/v2/m/device/series/records",
      key: "public_key",
      status: 403,
      reason: "series_not_permitted",
    },
  ],
  readFirmwareContent: [
    {
      path: "/api/v2/firmware/pump/content",
      key: "device_key",
      status: 403,
      reason: "wrong_key_kind",
    },
  ],
  downloadFirmware: [
    { path: `/api/v2/ota/${endedTicket}`, key: "device_key", status: 404, reason: "ticket_ended" },
  ],
  readMesh: [{ path: "/api/v2/mesh", key: "device_key", status: 403, reason: "wrong_key_kind" }],
  followNotifications: [{ path: "/api/v2/notify", key: "public_key", status: 403, reason: "wrong_key_kind" }],
  followOwnNotifications: [
    { path: "/api/v2/m/device/notify", key: "device_key", status: 403, reason: "wrong_key_kind" },
  ],
};

/** Media types of a route's answers beside JSON and pages. */
function streamedTypes({ answers, stream }: RouteDeclaration): string[] {
  const types = Object.values(answers).flatMap(({ other = {} }) => Object.keys(other));
  return stream === undefined ? types.filter((type) => type !== "text/html") : ["text/event-stream"];
}

const streaming = Object.entries<RouteDeclaration>(api)
  .map(([operation, route]) => ({ operation: operation as Operation, types: streamedTypes(route) }))
  .filter(({ types }) => types.length > 0);

test.each(streaming)(
  "$operation checks all rights before its answer begins",
  async ({ operation, types }) => {
    expect(refused[operation]).toBeDefined();
    for (const { path, key, status, reason } of refused[operation] ?? [])
      for (const accept of new Set([...types, "application/json"])) {
        const answer = await mesh.fetch(path, { key, headers: { accept } });
        expect([path, accept, answer.status, await answer.json()]).toMatchObject([
          ...[path, accept, status],
          { reason },
        ]);
      }
  },
);

test("a list by a public key checks its query before the answer begins", async () => {
  const answer = await mesh.fetch("/api/v2/m/device/data/other", { key: "public_key" });
  expect([answer.status, await answer.json()]).toMatchObject([404, { reason: "query_not_found" }]);
});
