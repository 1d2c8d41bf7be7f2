import { fakeDevice } from "@devmesh/testkit/fakes";
import { openEventStream, openWebSocket } from "@devmesh/testkit/notification-client";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { diagnosis, record, secrets } from "./fakes.ts";
import { type Fixture, startFixture } from "./gateway-fixture.ts";

const at = "2026-01-01T00:00:00.000Z";
const notify = "/api/v2/notify";

describe("the notification stream of a master key", () => {
  let mesh: Fixture;
  beforeAll(async () => {
    mesh = await startFixture();
  });
  afterAll(async () => {
    await mesh[Symbol.asyncDispose]();
  });

  test("tells over a WebSocket and as an event stream what happens, in its order", async () => {
    const websocket = await openWebSocket(mesh.url, notify, { key: secrets.master });
    const events = await openEventStream(mesh.url, notify, { key: secrets.master });
    await mesh.deviceEvents.created({ id: "pump", timestamp: at, device: fakeDevice("pump") });
    await mesh.deviceEvents.online({ id: "pump", timestamp: at });
    await mesh.rpcEvents.rpc_in({ id: "pump", timestamp: at, func: "Sys.GetInfo", params: [1] });
    await mesh.rpcEvents.rpc_out({ id: "pump", timestamp: at, name: "alarm", payload: { level: 3 } });
    await mesh.deviceEvents.updated({ id: "pump", timestamp: at, device: fakeDevice("pump", { name: "P" }) });
    await mesh.deviceEvents.offline({ id: "pump", timestamp: at });
    await mesh.deviceEvents.deleted({ id: "pump", timestamp: at });
    const frames = await websocket.heard(7);
    expect(websocket.names()).toEqual([
      "created",
      "online",
      "rpc.in.Sys.GetInfo",
      "rpc.out.alarm",
      "updated",
      "offline",
      "deleted",
    ]);
    expect(frames.map(({ data }) => data)).toEqual([
      fakeDevice("pump"),
      {},
      [1],
      { level: 3 },
      fakeDevice("pump", { name: "P" }),
      {},
      {},
    ]);
    expect(frames.every(({ id, timestamp }) => id === "pump" && timestamp === at)).toBe(true);
    expect(frames.map(({ seq }) => seq)).toEqual([...frames.map(({ seq }) => seq)].sort((a, b) => a - b));
    expect(await events.heard(7)).toEqual(frames);
    expect(events.ids.slice(1)).toEqual(frames.map(({ seq }) => String(seq)));
    websocket.leave();
    events.leave();
  });

  test("is open to a session, and has no secret of a call that writes one into a device", async () => {
    const live = await openWebSocket(mesh.url, notify, { key: secrets.session });
    const params = { mqtt: { user: "pump", pass: secrets.device } };
    await mesh.rpcEvents.rpc_in({ id: "pump", timestamp: at, func: "Config.Set", params });
    const [frame] = await live.heard(1);
    expect(frame?.data).toEqual({ mqtt: { user: "pump", pass: "dt_[redacted]" } });
    live.leave();
  });

  test("has a diagnosis under its own name, also of an id that is no device", async () => {
    const live = await openWebSocket(mesh.url, notify, { key: secrets.master });
    await mesh.deviceEvents.diagnosed({ id: "pump", timestamp: at, ...diagnosis });
    await mesh.deviceEvents.diagnosed({ id: "pmup", timestamp: at, ...diagnosis, reason: "unknown_device" });
    const { name, ...data } = diagnosis;
    expect(await live.heard(2)).toMatchObject([
      { id: "pump", name, timestamp: at, data },
      { id: "pmup", name, data: { ...data, reason: "unknown_device" } },
    ]);
    expect(live.frames[0]?.data).toEqual({ detail: null, ...data });
    live.leave();
  });

  test("begins behind `after`, or behind the header `Last-Event-ID`", async () => {
    const live = await openWebSocket(mesh.url, notify, { key: secrets.master });
    for (const id of ["a", "b", "c"]) await mesh.deviceEvents.online({ id, timestamp: at });
    const [first] = await live.heard(3);
    const again = await openWebSocket(mesh.url, `${notify}?after=${first?.seq}`, { key: secrets.master });
    const header = await openEventStream(mesh.url, `${notify}?after=0`, {
      key: secrets.master,
      headers: { "last-event-id": String(first?.seq) },
    });
    await mesh.deviceEvents.online({ id: "d", timestamp: at });
    const ids = async (client: typeof live) => (await client.heard(3)).map(({ id }) => id);
    expect(await ids(again)).toEqual(["b", "c", "d"]);
    expect(await ids(header as unknown as typeof live)).toEqual(["b", "c", "d"]);
    for (const client of [live, again, header]) client.leave();
  });

  test("holds records only where they are asked for", async () => {
    const without = await openWebSocket(mesh.url, notify, { key: secrets.master });
    const withData = await openWebSocket(mesh.url, `${notify}?data=1`, { key: secrets.master });
    await mesh.services.flush();
    expect(mesh.dataEvents.stored({ records: [record(1), record(2)] })).toBe("ok");
    const frames = await withData.heard(2);
    expect(frames.map(({ name, id, data }) => [name, id, data])).toEqual([
      ["data", "pump", record(1)],
      ["data", "pump", record(2)],
    ]);
    await mesh.deviceEvents.online({ id: "z", timestamp: at });
    await without.heard(1);
    expect(without.names()).toEqual(["online"]);
    for (const client of [without, withData]) client.leave();
  });

  test("tells over a WebSocket and as an event stream of one device alone, where it is asked for", async () => {
    const path = `${notify}?data=1&device=tank`;
    const websocket = await openWebSocket(mesh.url, path, { key: secrets.master });
    const events = await openEventStream(mesh.url, path, { key: secrets.master });
    const all = await openWebSocket(mesh.url, `${notify}?data=1`, { key: secrets.master });
    await mesh.services.flush();
    await mesh.deviceEvents.online({ id: "pump", timestamp: at });
    await mesh.rpcEvents.rpc_in({ id: "tank", timestamp: at, func: "Sys.GetInfo" });
    await all.heard(2);
    const ofTank = { device_id: "tank", topic: "db/tank/level" };
    const records = [record(1), record(2, ofTank), record(3), record(4, ofTank)];
    expect(mesh.dataEvents.stored({ records })).toBe("ok");
    await all.heard(6);
    await mesh.events.key_changed({ id: "tank", timestamp: at, change: "created" });
    await mesh.deviceEvents.deleted({ id: "pump", timestamp: at });
    await mesh.deviceEvents.created({ id: "tank", timestamp: at, device: fakeDevice("tank") });
    const frames = await websocket.heard(4);
    expect(frames.map(({ id, name, data }) => [id, name, data])).toEqual([
      ["tank", "rpc.in.Sys.GetInfo", null],
      ["tank", "data", record(2, ofTank)],
      ["tank", "data", record(4, ofTank)],
      ["tank", "created", fakeDevice("tank")],
    ]);
    expect(await events.heard(4)).toEqual(frames);
    await all.heard(8);
    for (const client of [websocket, events, all]) client.leave();
  });

  test("goes on behind `after` with one device alone", async () => {
    const live = await openWebSocket(mesh.url, notify, { key: secrets.master });
    for (const id of ["pump", "tank", "pump", "tank"]) await mesh.deviceEvents.online({ id, timestamp: at });
    const [first] = await live.heard(4);
    const path = `${notify}?device=tank&after=${first?.seq}`;
    const websocket = await openWebSocket(mesh.url, path, { key: secrets.master });
    const events = await openEventStream(mesh.url, path, { key: secrets.master });
    const expected = live.frames.filter(({ id }) => id === "tank");
    expect(await websocket.heard(2)).toEqual(expected);
    expect(await events.heard(2)).toEqual(expected);
    for (const client of [live, websocket, events]) client.leave();
  });
});
