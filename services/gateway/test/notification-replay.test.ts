import type { Notification } from "@devmesh/contracts/model/notification";
import { streamManager } from "@devmesh/service-kit/connection/streams";
import { eventually } from "@devmesh/testkit/eventually";
import { fakeDevice } from "@devmesh/testkit/fakes";
import { openEventStream, openWebSocket } from "@devmesh/testkit/notification-client";
import { expect, test } from "@jest/globals";
import { record, secrets } from "./fakes.ts";
import { type Fixture, startFixture } from "./gateway-fixture.ts";

const at = "2026-01-01T00:00:00.000Z";
const notify = "/api/v2/notify";
const own = "/api/v2/m/device/notify";
const key = secrets.master;
const numbers = (frames: readonly Notification[]) => frames.map(({ data }) => data);
const upTo = (count: number) => Array.from({ length: count }, (_, n) => n);

/** Says `rpc.out.n` for each number, some at a time and in their order. */
async function count(mesh: Fixture, from: number, to: number): Promise<void> {
  for (let n = from; n < to; n++)
    await mesh.rpcEvents.rpc_out({ id: "pump", timestamp: at, name: "n", payload: n });
}

test("a gateway that has just started sends earlier events and those that come meanwhile, once and in order", async () => {
  await using mesh = await startFixture();
  const first = await openWebSocket(mesh.url, notify, { key });
  await count(mesh, 0, 1_300);
  await first.heard(1_300);
  const url = await mesh.startAnother();
  const telling = count(mesh, 1_300, 1_800);
  const clients = await Promise.all(
    [0, 1, 2, 3, 4, 5, 6, 7].map(async (n) => {
      const known = first.frames[n * 150];
      const open = n % 2 === 0 ? openWebSocket : openEventStream;
      return { known, client: await open(url, `${notify}?after=${known?.seq}`, { key }) };
    }),
  );
  await telling;
  await first.heard(1_800);
  for (const { known, client } of clients) {
    const expected = upTo(1_800).slice(Number(known?.data) + 1);
    await client.heard(expected.length);
    expect(numbers(client.frames)).toEqual(expected);
    expect(client.frames).toEqual(first.frames.slice(Number(known?.data) + 1));
    client.leave();
  }
  first.leave();
});

test("events that are no longer kept become a gap, and a `seq` that was never given, too", async () => {
  await using mesh = await startFixture();
  await count(mesh, 0, 10);
  const manager = await streamManager(mesh.services);
  await manager.streams.purge("EVENTS", { seq: 6 });
  const url = await mesh.startAnother();
  const late = await openWebSocket(url, `${notify}?after=2`, { key });
  const frames = await late.heard(6);
  expect(frames.map(({ name, seq, data }) => [name, seq, data])).toEqual([
    ["gap", 5, {}],
    ...[5, 6, 7, 8, 9].map((n) => ["rpc.out.n", n + 1, n]),
  ]);
  const stranger = await openEventStream(url, `${notify}?after=999`, { key });
  await stranger.heard(1);
  await count(mesh, 10, 11);
  expect((await stranger.heard(2)).map(({ name, seq }) => [name, seq])).toEqual([
    ["gap", 10],
    ["rpc.out.n", 11],
  ]);
  for (const client of [late, stranger]) client.leave();
});

test("a listener that reads the past from the stream misses nothing when the broker goes and comes meanwhile", async () => {
  await using mesh = await startFixture();
  const payload = "x".repeat(400_000);
  for (let n = 0; n < 60; n++)
    await mesh.rpcEvents.rpc_out({ id: "pump", timestamp: at, name: "load", payload });
  // One that has none of them in memory.
  const url = await mesh.startAnother();
  const client = await openWebSocket(url, `${notify}?after=0`, { key });
  client.websocket.pause();
  await mesh.server.kill();
  await mesh.server.restart();
  await eventually(async () => {
    const answer = await fetch(`${url}/api/v2/devices`, { headers: { authorization: `Bearer ${key}` } });
    await answer.body?.cancel();
    return answer.status === 200;
  });
  await count(mesh, 0, 3);
  client.websocket.resume();
  await client.heard(63);
  expect(client.frames.map(({ seq }) => seq)).toEqual(upTo(64).slice(1));
  client.leave();
});

test("who reconnects for records gets a gap for those in between", async () => {
  await using mesh = await startFixture();
  await count(mesh, 0, 2);
  const client = await openWebSocket(mesh.url, `${notify}?after=1&data=1`, { key });
  const frames = await client.heard(2);
  expect(frames.map(({ name, data }) => [name, data])).toEqual([
    ["rpc.out.n", 1],
    ["gap", { names: ["data"] }],
  ]);
  client.leave();
});

test("listeners miss nothing while the broker is away, and get a gap when the stream of events is another one", async () => {
  await using mesh = await startFixture();
  const client = await openWebSocket(mesh.url, notify, { key });
  await count(mesh, 0, 5);
  await mesh.server.kill();
  await mesh.server.restart();
  await eventually(() => mesh.services.connected);
  await count(mesh, 5, 10);
  await client.heard(10);
  expect(numbers(client.frames)).toEqual(upTo(10));
  const manager = await streamManager(mesh.services);
  const { config } = await manager.streams.info("EVENTS");
  await manager.streams.delete("EVENTS");
  await manager.streams.add({ ...config, name: "EVENTS" });
  await client.heard(11);
  await count(mesh, 10, 12);
  await client.heard(13);
  expect(client.frames.slice(10).map(({ name }) => name)).toEqual(["gap", "rpc.out.n", "rpc.out.n"]);
  client.leave();
});

test("the holder of a public key gets several changes as one, in order with the rest, and a gap for what could not be asked", async () => {
  await using mesh = await startFixture();
  const acl = { read: ["/state/reported"], write: [], rpc: ["Allowed"], queries: { t: { topic: "temp/+" } } };
  const asked: (() => void)[] = [];
  mesh.fakes.devices.readAccess = async () => ({ acl, created_at: at });
  mesh.fakes.devices.readDevice = async ({ id, principal }) => {
    expect(principal).toEqual({ kind: "public_key", device_id: "pump" });
    await new Promise<void>((resolve) => asked.push(resolve));
    return { etag: '"1"', device: { id, shadow: { version: asked.length } } };
  };
  const client = await openWebSocket(mesh.url, `${own}?data=1`, { key: secrets.public_key });
  const other = await openWebSocket(mesh.url, notify, { key });
  const changed = (id: string) => mesh.deviceEvents.updated({ id, timestamp: at, device: fakeDevice(id) });
  await changed("pump");
  await eventually(() => asked.length === 1);
  await changed("pump");
  await mesh.rpcEvents.rpc_in({ id: "pump", timestamp: at, func: "Allowed" });
  await mesh.rpcEvents.rpc_in({ id: "pump", timestamp: at, func: "Forbidden" });
  await mesh.rpcEvents.rpc_in({ id: "tank", timestamp: at, func: "Allowed" });
  await mesh.rpcEvents.rpc_out({ id: "pump", timestamp: at, name: "private", payload: 1 });
  await changed("tank");
  await changed("pump");
  await other.heard(8);
  mesh.dataEvents.stored({
    records: [
      record(1, { topic: "db/pump/temp/inside" }),
      record(2, { topic: "db/pump/temp" }),
      record(3, { device_id: "tank", topic: "db/tank/temp/inside" }),
    ],
  });
  expect(client.frames).toEqual([]);
  asked[0]?.();
  await eventually(() => asked.length === 2);
  asked[1]?.();
  await client.heard(4);
  expect(client.frames.map(({ name, data }) => [name, data])).toEqual([
    ["updated", { id: "pump", shadow: { version: 1 } }],
    ["rpc.in.Allowed", null],
    ["updated", { id: "pump", shadow: { version: 2 } }],
    ["data", record(1, { topic: "db/pump/temp/inside" })],
  ]);
  mesh.fakes.devices.readDevice = async () => {
    throw new Error("the store is away");
  };
  await changed("pump");
  await client.heard(5);
  expect(client.frames[4]).toMatchObject({ name: "gap", id: null, data: {} });
  for (const each of [client, other]) each.leave();
});

test("a gateway that has just started sends the events of one device, and the gap of all", async () => {
  await using mesh = await startFixture();
  for (let n = 0; n < 600; n++)
    await mesh.rpcEvents.rpc_out({
      id: n % 100 === 0 ? "tank" : "pump",
      timestamp: at,
      name: "n",
      payload: n,
    });
  const manager = await streamManager(mesh.services);
  await manager.streams.purge("EVENTS", { seq: 201 });
  const url = await mesh.startAnother();
  const tank = await openWebSocket(url, `${notify}?after=50&device=tank`, { key });
  const pump = await openEventStream(url, `${notify}?after=590&device=pump`, { key });
  const silent = await openWebSocket(url, `${notify}?after=300&device=valve`, { key });
  await tank.heard(5);
  expect(tank.frames.map(({ name, data }) => [name, data])).toEqual([
    ["gap", {}],
    ...[200, 300, 400, 500].map((n) => ["rpc.out.n", n]),
  ]);
  await pump.heard(10);
  expect(numbers(pump.frames)).toEqual([590, 591, 592, 593, 594, 595, 596, 597, 598, 599]);
  await mesh.deviceEvents.online({ id: "pump", timestamp: at });
  await mesh.deviceEvents.online({ id: "valve", timestamp: at });
  expect((await silent.heard(1)).map(({ name, id }) => [name, id])).toEqual([["online", "valve"]]);
  for (const client of [tank, pump, silent]) client.leave();
});

test("who receives records gets a gap when the broker was away", async () => {
  await using mesh = await startFixture();
  const records = await openWebSocket(mesh.url, `${notify}?data=1`, { key });
  const ofDevice = await openEventStream(mesh.url, `${notify}?data=1&device=tank`, { key });
  const events = await openWebSocket(mesh.url, notify, { key });
  await mesh.server.kill();
  await mesh.server.restart();
  for (const client of [records, ofDevice])
    expect((await client.heard(1)).map(({ name, data }) => [name, data])).toEqual([
      ["gap", { names: ["data"] }],
    ]);
  await eventually(() => mesh.services.connected);
  await count(mesh, 0, 1);
  expect((await events.heard(1)).map(({ name }) => name)).toEqual(["rpc.out.n"]);
  for (const client of [records, ofDevice, events]) client.leave();
});

test("the holder of a public key is given nothing from before its device was created, in replays and live", async () => {
  await using mesh = await startFixture();
  const acl = { read: ["/state"], write: [], rpc: ["Open"], queries: { t: { topic: "#" } } };
  mesh.fakes.devices.readAccess = async () => ({ acl, created_at: at });
  const former = { id: "pump", timestamp: "2025-12-31T23:59:57.999Z" };
  const present = { id: "pump", timestamp: at };
  const happen = async (about: typeof former) => {
    await mesh.rpcEvents.rpc_in({ ...about, func: "Open", params: [about.timestamp] });
    await mesh.deviceEvents.online(about);
    await mesh.deviceEvents.updated({ ...about, device: fakeDevice("pump") });
    await mesh.deviceEvents.offline(about);
  };
  const names = ["rpc.in.Open", "online", "updated", "offline"];
  await happen(former);
  await mesh.deviceEvents.deleted(former);
  await happen(present);
  const master = await openWebSocket(mesh.url, `${notify}?after=0`, { key });
  await master.heard(9);
  for (const url of [mesh.url, await mesh.startAnother()]) {
    const client = await openEventStream(url, `${own}?after=0`, { key: secrets.public_key });
    await client.heard(4);
    expect(client.frames.map(({ name }) => name)).toEqual(names);
    expect(client.frames[0]?.data).toEqual([at]);
    client.leave();
  }

  const live = await openWebSocket(mesh.url, `${own}?data=1`, { key: secrets.public_key });
  await happen(former);
  const records = [former, present].map(({ timestamp }, n) => record(n, { timestamp }));
  mesh.dataEvents.stored({ records });
  await mesh.deviceEvents.online(present);
  await live.heard(2);
  expect(live.frames.map(({ name }) => name).sort()).toEqual(["data", "online"]);
  expect(live.frames.map(({ timestamp }) => timestamp)).toEqual([at, at]);
  for (const client of [master, live]) client.leave();
});
