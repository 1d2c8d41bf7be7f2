import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { eventually } from "@devmesh/testkit/eventually";
import { expect, test } from "@jest/globals";
import { call, openWebhooks, startReceiver } from "./webhooks-fixture.ts";

const now = () => new Date().toISOString();
const events = 200;

/** A receiver that answers as it likes. */
async function serveBadly(answer: RequestListener) {
  const server = createServer(answer);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

test("a receiver that is slow, down, picky or endless costs a healthy one nothing, and no memory", async () => {
  await using mesh = await openWebhooks();
  await using healthy = await startReceiver();
  // It takes longer than a request may take, and is on the host of the healthy one.
  healthy.answers.set("/slow", () => 0);
  const taken = new Set<string>();
  await using picky = await serveBadly(async (request, response) => {
    const { subject } = JSON.parse(await text(request));
    const isRefused = Number(subject.slice(1)) % 10 === 0;
    if (!isRefused) taken.add(subject);
    response.writeHead(isRefused ? 500 : 204).end();
  });
  let written = 0;
  await using endless = await serveBadly((request, response) => {
    request.resume();
    const chunk = Buffer.alloc(64 * 1024);
    const write = () => {
      while (!response.destroyed && response.write(chunk)) written += chunk.length;
    };
    response.on("drain", write);
    write();
  });
  await using service = await mesh.start();
  const down = "http://127.0.0.1:1/";
  const bad = [healthy.url("/slow"), down, picky.url, endless.url];
  const hooks: string[] = [];
  for (const url of bad)
    hooks.push((await mesh.client.createWebhook({ url, events: ["offline"] }, call())).id);
  await mesh.client.createWebhook({ url: healthy.url("/"), events: ["offline"] }, call());
  const waitingOf = async (index: number) =>
    (await mesh.client.readWebhook({ id: hooks[index] ?? "" }, call())).state.waiting;

  const before = await service.metric("process_resident_memory_bytes");
  for (let number = 0; number < events; number++)
    await mesh.deviceEvents.offline({ id: `d${number}`, timestamp: now() });
  await eventually(() => new Set(healthy.eventsAt("/").map(({ subject }) => subject)).size === events);
  expect(await waitingOf(0)).toBe(events);
  expect(await waitingOf(1)).toBe(events);
  expect(await service.metric("devmesh_webhook_dead_total")).toBe(0);
  await eventually(() => taken.size === events - events / 10);
  await eventually(async () => (await waitingOf(3)) === 0);
  // Each answer was read to 16 KB; the rest is what the sockets buffer.
  expect(written / events).toBeLessThan(16 * 1024 * 1024);
  const grown = (await service.metric("process_resident_memory_bytes")) - before;
  expect(grown).toBeLessThan(150 * 1024 * 1024);
});

test("a receiver that answers 101 silences neither its events nor its records, and a stop waits for nothing", async () => {
  await using mesh = await openWebhooks();
  let requests = 0;
  await using upgrading = await serveBadly(({ socket }) => {
    requests++;
    socket.write("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n");
  });
  const service = await mesh.start();
  const { url } = upgrading;
  const create = (events: "offline" | "data") => mesh.client.createWebhook({ url, events: [events] }, call());
  const [ofEvents, ofRecords] = [await create("offline"), await create("data")];
  await eventually(() => mesh.followed.has("all"));
  const record = { id: 1, device_id: "pump", topic: "db/pump/t", message: "m1" };
  mesh.records.push({ ...record, timestamp: now() });
  // More than a webhook sends at a time.
  for (let number = 0; number < 9; number++)
    await mesh.deviceEvents.offline({ id: `d${number}`, timestamp: now() });
  await eventually(() => requests >= 9 + 2);
  for (const { id } of [ofEvents, ofRecords])
    await eventually(async () => {
      const { state } = await mesh.client.readWebhook({ id }, call());
      return state.last_failure?.status === 101 && state.last_failure.error === "status 101";
    });
  expect([await service.end(), service.output()]).toEqual([0, expect.not.stringContaining("too long")]);
});
