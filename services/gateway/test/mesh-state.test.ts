import { MeshState } from "@devmesh/contracts/model/mesh-state";
import { Problem } from "@devmesh/contracts/rest/problem";
import { announce } from "@devmesh/service-kit/discovery";
import { ServiceError } from "@devmesh/service-kit/errors";
import { ManualClock } from "@devmesh/service-kit/testing/manual-clock";
import { eventually } from "@devmesh/testkit/eventually";
import { afterAll, afterEach, beforeAll, expect, test } from "@jest/globals";
import { type Fixture, startFixture } from "./gateway-fixture.ts";

let mesh: Fixture;
const clock = new ManualClock();
beforeAll(async () => {
  mesh = await startFixture({ clock });
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
  mesh.standIns.reset();
  // What was read before is old.
  await clock.advance(1_000);
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

test("tells who runs, how they do in milliseconds, and what waits", async () => {
  const { services, queues } = await read();
  const replicas = services.flatMap(({ name, replicas }) => (name === "stand-ins" ? replicas : []));
  expect(replicas.find(({ version }) => version === "3.0.0")?.endpoints).toEqual([
    { name: "greet", requests: 4, errors: 1, mean_ms: 2.5, total_ms: 10 },
  ]);
  expect(JSON.stringify(services)).not.toContain("secret");
  expect(queues).toEqual({ data: 7, rpc_bridge: 2, mail: 1, dead_mail: 4 });
});

test("a queue whose owner does not say is null, and the others are told", async () => {
  mesh.standIns.mailer.readQueue = () => Promise.reject(ServiceError.of("unavailable"));
  mesh.standIns.data.readBacklog = async (_, context) => context.fail("backlog_unknown");
  expect((await read()).queues).toEqual({ data: null, rpc_bridge: 2, mail: null, dead_mail: null });
});

test("services are asked once for all who ask within a second", async () => {
  let asked = 0;
  mesh.standIns.mailer.readQueue = async () => {
    asked++;
    return { waiting: asked, dead: 0 };
  };
  const states = await Promise.all([read(), read(), read()]);
  expect(states.map(({ queues }) => queues.mail)).toEqual([1, 1, 1]);
  await clock.advance(1_000);
  expect((await read()).queues.mail).toBe(2);
});

test("a listener is told again every 2 s until it leaves", async () => {
  const leaving = new AbortController();
  const { events, ended } = await listen(leaving.signal);
  await eventually(() => events().length === 1);
  mesh.standIns.mailer.readQueue = async () => ({ waiting: 9, dead: 9 });
  await eventually(async () => {
    await clock.advance(500);
    return events().length >= 3;
  });
  expect(
    events()
      .map(({ queues }) => queues.mail)
      .slice(0, 2),
  ).toEqual([1, 9]);
  leaving.abort();
  await expect(ended).rejects.toThrow();
});

test("a listener whose key is revoked is told no more", async () => {
  const { events, ended } = await listen();
  await eventually(() => events().length === 1);
  mesh.standIns.keys.verify = async (_, context) => context.fail("key_invalid");
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
