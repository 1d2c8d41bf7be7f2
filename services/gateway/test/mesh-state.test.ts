import { MeshState } from "@devmesh/contracts/model/mesh-state";
import { Problem } from "@devmesh/contracts/rest/problem";
import { natsConnection } from "@devmesh/service-kit/connection/nats-connection";
import { ServiceError } from "@devmesh/service-kit/errors";
import { announce } from "@devmesh/service-kit/process/discovery";
import { ManualClock } from "@devmesh/service-kit/testing/manual-clock";
import { eventually } from "@devmesh/testkit/eventually";
import { afterAll, afterEach, beforeAll, expect, test } from "@jest/globals";
import { type Fixture, startFixture } from "./gateway-fixture.ts";

let mesh: Fixture;
const clock = new ManualClock();
beforeAll(async () => {
  mesh = await startFixture({ clock, env: { NOTIFY_MASTER_LISTENERS: "3" } });
  const greet = { name: "greet", subject: "greet", queueGroup: "greeter", lastError: "secret" };
  announce(mesh.services, {
    description: "greets",
    served: [
      {
        contract: { service: "greeter", version: 3, methods: {} },
        endpoints: [{ ...greet, requests: 4, errors: 1, processingNs: 10_000_000 }],
        drain: async () => 0,
      },
    ],
  });
  await mesh.services.flush();
});
afterEach(async () => {
  mesh.fakes.reset();
  // What was read before is old, also for listeners.
  await clock.advance(2_000);
});
afterAll(async () => mesh[Symbol.asyncDispose]());

async function read(): Promise<MeshState> {
  const answer = await mesh.fetch("/api/v2/mesh");
  expect(answer.status).toBe(200);
  return MeshState.parse(await answer.json());
}

/** The events of `GET /mesh` as they come. */
async function listen(signal?: AbortSignal) {
  const answer = await mesh.fetch("/api/v2/mesh", {
    headers: { accept: "text/event-stream" },
    ...(signal !== undefined && { signal }),
  });
  expect(answer.headers.get("content-type")).toBe("text/event-stream");
  let text = "";
  const ended = (async () => {
    for await (const chunk of answer.body ?? []) text += Buffer.from(chunk).toString("utf8");
  })();
  // Not every test looks at how it ends.
  ended.catch(() => undefined);
  return {
    ended,
    text: () => text,
    events: () =>
      text
        .split("\n\n")
        .filter((event) => event.startsWith("data: "))
        .map((event) => MeshState.parse(JSON.parse(event.slice("data: ".length)))),
  };
}

test("the state has all devices in numbers, and is complete without them", async () => {
  expect((await read()).fleet).toMatchObject({ devices: 1, no_firmware: 1 });
  await clock.advance(2_000);
  mesh.fakes.devices.summarizeFleet = async () => {
    throw ServiceError.of("unavailable");
  };
  expect(await read()).not.toHaveProperty("fleet");
});

test("answers which services run, their times in milliseconds, and what waits", async () => {
  const { services, queues, mail_delivery } = await read();
  const replicas = services.flatMap(({ name, replicas }) => (name === "fakes" ? replicas : []));
  expect(replicas.find(({ version }) => version === "3.0.0")?.endpoints).toEqual([
    { name: "greet", requests: 4, errors: 1, mean_ms: 2.5, total_ms: 10 },
  ]);
  expect(JSON.stringify(services)).not.toContain("secret");
  expect(queues).toEqual({ data: 7, rpc_bridge: 2, jobs: 3, mail: 1, dead_mail: 4, webhooks: 0 });
  expect(mail_delivery).toBe("files");
});

test("a queue whose owner does not answer is null, the others are answered", async () => {
  mesh.fakes.mailer.readQueue = () => Promise.reject(ServiceError.of("unavailable"));
  mesh.fakes.data.readBacklog = async (_, context) => context.fail("backlog_unknown");
  expect((await read()).queues).toEqual({
    data: null,
    rpc_bridge: 2,
    jobs: 3,
    mail: null,
    dead_mail: null,
    webhooks: 0,
  });
});

test("a service hangs while it, or one of its replicas, is connected and does not answer", async () => {
  expect((await read()).hanging).toEqual([]);
  const connection = mesh.services[natsConnection];
  const ignore = { callback: () => undefined };
  // Another replica of it goes on; that one answered before.
  const replica = announce(
    { ...mesh.services, name: "keys", replicaId: "k1" },
    { description: "", served: [] },
  );
  const other = announce(
    { ...mesh.services, name: "keys", replicaId: "k2" },
    { description: "", served: [] },
  );
  await mesh.services.flush();
  await clock.advance(1_000);
  expect((await read()).hanging).toEqual([]);
  replica.withdraw();
  mesh.fakes.data.readBacklog = () => new Promise(() => undefined);
  const silent = ["$SRV.PING.keys.k1", "$SRV.PING.data"].map((ping) => connection.subscribe(ping, ignore));
  await mesh.services.flush();
  await clock.advance(1_000);
  const state = await read();
  expect(state.hanging).toEqual(["data", "keys"]);
  expect(state.services.map(({ name }) => name)).toContain("keys");
  expect(state.queues).toEqual({ data: null, rpc_bridge: 2, jobs: 3, mail: 1, dead_mail: 4, webhooks: 0 });
  for (const subscription of silent) subscription.unsubscribe();
  other.withdraw();
  await mesh.services.flush();
  await clock.advance(1_000);
  expect((await read()).hanging).toEqual([]);
});

test("services are asked once for all who ask within a second", async () => {
  let asked = 0;
  mesh.fakes.mailer.readQueue = async () => {
    asked++;
    return { waiting: asked, dead: 0 };
  };
  const states = await Promise.all([read(), read(), read()]);
  expect(states.map(({ queues }) => queues.mail)).toEqual([1, 1, 1]);
  await clock.advance(1_000);
  expect((await read()).queues.mail).toBe(2);
});

test("a listener gets the state every 2 s until it leaves", async () => {
  const leaving = new AbortController();
  const { events, ended } = await listen(leaving.signal);
  await eventually(() => events().length === 1);
  mesh.fakes.mailer.readQueue = async () => ({ waiting: 9, dead: 9 });
  // The clock does not advance during a reading: its calls would time out on a busy machine.
  for (const published of [2, 3]) {
    await clock.advance(2_000);
    await eventually(() => events().length === published);
  }
  leaving.abort();
  await expect(ended).rejects.toThrow();
  const [first, ...others] = events().map(({ queues }) => queues.mail);
  // A queue that did not answer in time, on a busy machine, is null.
  expect([first, others.filter((mail) => mail !== null && mail !== 9)]).toEqual([1, []]);
  expect(others).toContain(9);
});

test("services are asked once every 2 s for all who listen, whenever each of them came", async () => {
  let rounds = 0;
  const counting = mesh.services[natsConnection].subscribe("$SRV.STATS", {
    callback: () => {
      rounds++;
    },
  });
  await mesh.services.flush();
  const leaving = new AbortController();
  const listeners = [await listen(leaving.signal)];
  const pass = async (ms: number) => {
    for (let passed = 0; passed < ms; passed += 100) await clock.advance(100);
  };
  for (const ms of [500, 700]) {
    await pass(ms);
    listeners.push(await listen(leaving.signal));
  }
  const allTold = (times: number) =>
    eventually(() => listeners.every(({ events }) => events().length === times));
  await allTold(1);
  await pass(800);
  await allTold(2);
  await pass(2_000);
  await allTold(3);
  expect(rounds).toBe(3);
  const [ofFirst = [], ...ofOthers] = listeners.map(({ events }) => events());
  expect(ofOthers).toEqual([ofFirst, ofFirst]);
  const [first = 0, ...later] = ofFirst.map(({ timestamp }) => Date.parse(timestamp));
  expect(later).toEqual([first + 2_000, first + 4_000]);
  counting.unsubscribe();
  leaving.abort();
  await Promise.allSettled(listeners.map(({ ended }) => ended));
});

test("a key has so many places for listeners, and who leaves gives a place back", async () => {
  const refusal = async () => {
    const answer = await mesh.fetch("/api/v2/mesh", { headers: { accept: "text/event-stream" } });
    if (answer.status === 200) {
      await answer.body?.cancel();
      return null;
    }
    expect(answer.headers.get("content-type")).toBe("application/problem+json");
    expect(answer.headers.get("retry-after")).toBe("5");
    const { status, reason } = Problem.parse(await answer.json());
    return [status, reason];
  };
  const leaving = [new AbortController(), new AbortController(), new AbortController()];
  await eventually(async () => (await refusal()) === null);
  const listeners = await Promise.all(leaving.map(({ signal }) => eventually(() => listen(signal))));
  expect(await refusal()).toEqual([429, "too_many_listeners"]);
  expect((await read()).queues.mail).toBe(1);
  leaving[0]?.abort();
  await eventually(async () => (await refusal()) === null);
  for (const leave of leaving) leave.abort();
  await Promise.allSettled(listeners.map(({ ended }) => ended));
});

test("who asks what a stream would be takes no place", async () => {
  for (let times = 0; times < 4; times++) {
    const answer = await mesh.fetch("/api/v2/mesh", {
      method: "HEAD",
      headers: { accept: "text/event-stream" },
    });
    expect([answer.status, answer.headers.get("content-type")]).toEqual([200, "text/event-stream"]);
  }
});

test("a listener whose key is revoked gets no more", async () => {
  const { events, ended } = await listen();
  await eventually(() => events().length === 1);
  mesh.fakes.keys.verify = async (_, context) => context.fail("key_invalid");
  await mesh.events.revoked({ key_ids: ["id-master"] });
  const stream = { over: false };
  void ended.then(() => {
    stream.over = true;
  });
  await eventually(async () => {
    await clock.advance(500);
    return stream.over;
  });
});

test("only a master key sees the mesh", async () => {
  const answer = await mesh.fetch("/api/v2/mesh", { key: "device_key" });
  expect(Problem.parse(await answer.json())).toMatchObject({ status: 403, reason: "wrong_key_kind" });
});
