import { secretsInText } from "@devmesh/contracts/model/api-key";
import { keptChanges, type MeshChange, MeshChanges, maxChanges } from "@devmesh/contracts/model/mesh-change";
import { api } from "@devmesh/contracts/rest/api";
import type { RouteDeclaration } from "@devmesh/contracts/rest/route";
import { systemClock } from "@devmesh/service-kit/clock";
import { natsConnection } from "@devmesh/service-kit/connection/nats-connection";
import { eventually } from "@devmesh/testkit/eventually";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { ChangeLog } from "../src/mesh/change-log.ts";
import { foldChanges } from "../src/mesh/fold-changes.ts";
import { secrets } from "./fakes.ts";
import { type Fixture, startFixture } from "./gateway-fixture.ts";

const began = Date.parse("2026-03-01T12:00:00Z");

function change(second: number, more: Partial<MeshChange> = {}): MeshChange {
  return {
    at: new Date(began + second * 1_000).toISOString(),
    by: { kind: "master", id: "k1", name: null },
    operation: "deleteDevice",
    target: { kind: "device", id: `d${second}` },
    count: 1,
    ...more,
  };
}

const hourly = (kind: MeshChange["by"]["kind"], length: number) =>
  Array.from({ length }, (_, nth) => change(nth * 3_600, { by: { kind, id: `${kind}-${nth}`, name: null } }));

describe("changes", () => {
  test("of one key by one operation are one entry while less than a minute lies between them", () => {
    const job = Array.from({ length: 200 }, (_, nth) => change(nth));
    expect(foldChanges([], job)).toEqual([{ ...change(199), count: 200 }]);
    expect(foldChanges([change(0)], [change(59)])).toHaveLength(1);
    expect(foldChanges([change(0)], [change(60)])).toEqual([change(60), change(0)]);
  });

  test("of another key or by another operation are others, also in between", () => {
    const other = change(1, { by: { kind: "master", id: "k2", name: null } });
    const rotation = change(2, { operation: "rotateToken" });
    expect(foldChanges([], [change(0), other, rotation, change(3)])).toEqual([
      { ...change(3), count: 2 },
      rotation,
      other,
    ]);
  });

  test("that come late from another gateway keep the newest target", () => {
    expect(foldChanges([change(9, { count: 4 })], [change(5, { count: 2 })])).toEqual([
      { ...change(9), count: 6 },
    ]);
  });

  test("are the newest of each kind of key", () => {
    const made = hourly("master", keptChanges.master + 5);
    const kept = foldChanges([], made);
    expect(kept).toHaveLength(keptChanges.master);
    expect(kept[0]).toEqual(made.at(-1));
  });

  test("of many restricted keys displace none of master keys, nor of other kinds", () => {
    const byMaster = hourly("master", keptChanges.master);
    const byBackend = hourly("device_key", 1);
    const before = foldChanges([], [...byMaster, ...byBackend]);
    const later = [...hourly("public_key", 500), ...hourly("customer", 500)].map((made) => ({
      ...made,
      at: new Date(Date.parse(made.at) + 1e10).toISOString(),
    }));
    const kept = foldChanges(before, later);
    expect(kept).toEqual(expect.arrayContaining([...byMaster, ...byBackend]));
    const inAll = keptChanges.master + 1 + keptChanges.public_key + keptChanges.customer;
    expect(kept).toHaveLength(inAll);
    expect(maxChanges).toBe(Object.values(keptChanges).reduce<number>((sum, of) => sum + of, 0));
  });
});

async function readFrom({ fetch }: Fixture): Promise<MeshChanges> {
  const answer = await fetch("/api/v2/mesh/changes");
  expect(answer.status).toBe(200);
  return MeshChanges.parse(await answer.json());
}

describe("the list of changes", () => {
  let mesh: Fixture;
  beforeAll(async () => {
    mesh = await startFixture();
  });
  afterAll(async () => mesh[Symbol.asyncDispose]());

  const read = () => readFrom(mesh);
  const entryOf = async (operation: string) => (await read()).find((entry) => entry.operation === operation);

  test("is empty at first, and reads and refused requests leave it so", async () => {
    expect(await read()).toEqual([]);
    expect((await mesh.fetch("/api/v2/devices")).status).toBe(200);
    expect((await mesh.fetch("/api/v2/devices", { json: { id: "pump" } })).status).toBe(409);
    expect((await mesh.fetch("/api/v2/devices", { json: { no: 1 } })).status).toBe(400);
    expect((await mesh.fetch("/api/v2/keys/last", { method: "DELETE" })).status).toBe(409);
    expect((await mesh.fetch("/api/v2/devices/pump/rpc/Any", { json: {} })).status).toBe(200);
    expect((await mesh.fetch("/api/v2/devices/pump", { key: "device_key", json: {} })).status).toBe(403);
    // A change that is listed shows that those before were written, if they ever are.
    expect((await mesh.fetch("/api/v2/devices", { json: { id: "lamp" } })).status).toBe(201);
    await eventually(async () => (await read()).length > 0);
    expect((await read()).map(({ operation }) => operation)).toEqual(["createDevice"]);
  });

  test("names who made a change and what was changed", async () => {
    const master = { kind: "master", id: "id-master", name: "Ann" };
    expect(await entryOf("createDevice")).toMatchObject({
      by: master,
      target: { kind: "device", id: "lamp" },
      count: 1,
    });
    await mesh.fetch("/api/v2/keys", { json: {} });
    await mesh.fetch("/api/v2/devices/pump", { method: "DELETE" });
    await mesh.fetch("/api/v2/customer", { key: "customer", json: { meta: { a: 1 } } });
    await mesh.fetch("/api/v2/device", { key: "device_key", json: {} });
    await mesh.fetch("/api/v2/customers/ann", { key: "session", method: "DELETE" });
    await mesh.fetch("/api/v2/m/device", { key: "public_key", json: {} });
    const expected = {
      createKey: { by: master, target: { kind: "key", id: "k1" } },
      deleteCustomer: { by: master, target: { kind: "customer", id: "ann" } },
      deleteDevice: { by: master, target: { kind: "device", id: "pump" } },
      updateCustomer: {
        by: { kind: "customer", id: "ann", name: null },
        target: { kind: "customer", id: "ann" },
      },
      patchAppDevice: {
        by: { kind: "device_key", id: "id-device_key", name: null },
        target: { kind: "device", id: "pump" },
      },
      patchOwnDevice: {
        by: { kind: "public_key", id: "pump", name: null },
        target: { kind: "device", id: "pump" },
      },
    };
    await eventually(async () => (await entryOf("patchOwnDevice")) !== undefined);
    for (const [operation, entry] of Object.entries(expected))
      expect(await entryOf(operation)).toMatchObject(entry);
  });

  test("has a job on many devices as one entry, also by way of two gateways", async () => {
    const other = await mesh.startAnother();
    const rotate = (url: string, nth: number) =>
      fetch(`${url}/api/v2/devices/d${nth}/token`, {
        method: "POST",
        headers: { authorization: `Bearer ${secrets.master}` },
      });
    const answers = await Promise.all(
      Array.from({ length: 40 }, (_, nth) => rotate(nth % 2 === 0 ? mesh.url : other, nth)),
    );
    expect(answers.every(({ status }) => status === 200)).toBe(true);
    await eventually(async () => (await entryOf("rotateToken"))?.count === 40);
  });

  test("holds no secret, no mail address and nothing of a body", async () => {
    const text = JSON.stringify(await read());
    expect(text.match(secretsInText)).toBeNull();
    expect(text).not.toContain("@");
    expect(text).not.toContain('"a":1');
  });

  test("is written before a gateway ends", async () => {
    await mesh.fetch("/api/v2/mail/dead/7/retry", { method: "POST" });
    const other = await mesh.startAnother();
    await mesh.stopGateway();
    const answer = await fetch(`${other}/api/v2/mesh/changes`, {
      headers: { authorization: `Bearer ${secrets.master}` },
    });
    const [newest] = MeshChanges.parse(await answer.json());
    expect(newest).toMatchObject({ operation: "retryDeadMail", target: { kind: "mail", id: "7" } });
  });
});

test("a request is answered while the broker keeps nothing, and its change is listed later", async () => {
  await using mesh = await startFixture();
  const inTheWay = JSON.stringify({ name: "OTHER", subjects: ["changes.>"] });
  await mesh.services[natsConnection].request("$JS.API.STREAM.CREATE.OTHER", inTheWay);
  expect((await mesh.fetch("/api/v2/devices/pump", { json: {} })).status).toBe(200);
  await eventually(() => mesh.log().includes("the last changes are not written yet"));
  await mesh.services[natsConnection].request("$JS.API.STREAM.DELETE.OTHER");
  await eventually(async () => (await readFrom(mesh)).length === 1);
});

test("a job is one message of the broker however long it takes, and each kind of key has its places", async () => {
  await using mesh = await startFixture();
  const storedMessages = async () => {
    const info = await mesh.services[natsConnection].request("$JS.API.STREAM.INFO.CHANGES");
    return info.json<{ state: { messages: number } }>().state.messages;
  };
  for (const count of [1, 2]) {
    expect((await mesh.fetch("/api/v2/devices/pump", { json: {} })).status).toBe(200);
    await eventually(async () => (await readFrom(mesh))[0]?.count === count);
  }
  expect(await storedMessages()).toBe(1);
  const gateway = new ChangeLog({ bus: mesh.services, clock: systemClock, log: mesh.services.log });
  const byMaster = hourly("master", keptChanges.master + 5);
  for (const made of [...byMaster, ...hourly("customer", 20)]) gateway.add(made);
  await gateway.stop();
  expect(await storedMessages()).toBe(1 + keptChanges.master + keptChanges.customer);
  const listed = await gateway.read();
  expect(listed).toContainEqual(byMaster.at(-1));
  expect(listed).not.toContainEqual(byMaster.at(0));
});

test("requests that change something are listed; calls, jobs, sessions, tests and what an alert keeps itself are not", () => {
  const unlisted = Object.entries<RouteDeclaration>(api)
    .filter(([, { method, change }]) => method !== "get" && change === null)
    .map(([operation]) => operation);
  expect(unlisted.sort()).toEqual([
    "callFunction",
    "callOwnFunction",
    "cancelExecution",
    "changeAlert",
    "changeJob",
    "createJob",
    "createSession",
    "endSession",
    "testChannel",
    "testWebhook",
    "tryRule",
  ]);
});
