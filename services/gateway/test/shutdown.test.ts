import { once } from "node:events";
import { connect } from "node:net";
import { ManualClock } from "@devmesh/service-kit/testing/manual-clock";
import { eventually } from "@devmesh/testkit/eventually";
import { fakeDevice } from "@devmesh/testkit/fakes";
import { expect, test } from "@jest/globals";
import { startFixture } from "./gateway-fixture.ts";

test("a gateway that stops finishes what runs, ends its connections and takes no new ones", async () => {
  await using mesh = await startFixture();
  let finish = (): void => undefined;
  let begun = false;
  mesh.fakes.devices.readDevice = async () => {
    begun = true;
    await new Promise<void>((resolve) => {
      finish = resolve;
    });
    return { etag: '"1"', device: fakeDevice("pump") as never };
  };
  const running = mesh.fetch("/api/v2/devices/pump");
  await eventually(() => begun);
  const stopped = mesh.stopGateway();
  await expect(fetch(`${mesh.url}/docs`)).rejects.toThrow();
  finish();
  const answer = await running;
  expect(answer.status).toBe(200);
  expect(((await answer.json()) as { id: string }).id).toBe("pump");
  await stopped;
});

test("what does not finish in time is unavailable, and what waits for its client is cut off", async () => {
  await using mesh = await startFixture({ env: { DRAIN_MS: "100" } });
  const { hostname, port } = new URL(mesh.url);
  const slow = connect(Number(port), hostname);
  const closed = once(slow, "close");
  slow.write("POST /api/v2/devices HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n{");
  slow.resume();
  let begun = false;
  let release = (): void => undefined;
  mesh.fakes.devices.readDevice = async () => {
    begun = true;
    await new Promise<void>((resolve) => {
      release = resolve;
    });
    return { etag: '"1"', device: fakeDevice("pump") as never };
  };
  const running = mesh.fetch("/api/v2/devices/pump");
  await eventually(() => begun);
  await mesh.stopGateway();
  const answer = await running;
  expect(answer.status).toBe(503);
  expect(await answer.json()).toMatchObject({ reason: "unavailable" });
  await closed;
  release();
});

test("without LAME_DUCK_MS idle connections are closed at once", async () => {
  await using mesh = await startFixture({ env: { DRAIN_MS: "60000" } });
  const { hostname, port } = new URL(mesh.url);
  const socket = connect(Number(port), hostname);
  socket.write("GET /healthy HTTP/1.1\r\nHost: x\r\n\r\n");
  await once(socket, "data");
  const closed = once(socket, "close");
  socket.resume();
  await mesh.stopGateway();
  await closed;
});

test("requests are still taken for LAME_DUCK_MS, and end their connections", async () => {
  const clock = new ManualClock();
  await using mesh = await startFixture({ env: { LAME_DUCK_MS: "5000" }, clock });
  let stopped = false;
  const stopping = mesh.stopGateway().then(() => {
    stopped = true;
  });
  const answer = await mesh.fetch("/api/v2/openapi.json");
  expect([answer.status, answer.headers.get("connection")]).toEqual([200, "close"]);
  await answer.arrayBuffer();
  expect(stopped).toBe(false);
  await clock.advance(5_000);
  await stopping;
  await expect(fetch(`${mesh.url}/docs`)).rejects.toThrow();
});

test("a request that runs when the gateway begins to stop ends its connection", async () => {
  const clock = new ManualClock();
  await using mesh = await startFixture({ env: { LAME_DUCK_MS: "5000" }, clock });
  const begun = Promise.withResolvers<void>();
  const released = Promise.withResolvers<void>();
  mesh.fakes.devices.readDevice = async () => {
    begun.resolve();
    await released.promise;
    return { etag: '"1"', device: fakeDevice("pump") as never };
  };
  const running = mesh.fetch("/api/v2/devices/pump");
  await begun.promise;
  const stopping = mesh.stopGateway();
  released.resolve();
  const answer = await running;
  expect([answer.status, answer.headers.get("connection")]).toEqual([200, "close"]);
  await answer.arrayBuffer();
  await clock.advance(5_000);
  await stopping;
});

test("a connection that was idle is answered for as long as `Keep-Alive` has announced", async () => {
  const clock = new ManualClock();
  await using mesh = await startFixture({ env: { LAME_DUCK_MS: "20000" }, clock });
  const { hostname, port } = new URL(mesh.url);
  const socket = connect(Number(port), hostname);
  const ask = async () => {
    socket.write("GET /healthy HTTP/1.1\r\nHost: x\r\n\r\n");
    return String((await once(socket, "data", { signal: AbortSignal.timeout(10_000) }))[0]);
  };
  const announced = /Keep-Alive: timeout=(\d+)/.exec(await ask())?.[1];
  const stopping = mesh.stopGateway();
  await clock.advance(Number(announced) * 1_000);
  expect(await ask()).toContain("Connection: close");
  await clock.advance(20_000);
  await stopping;
});
