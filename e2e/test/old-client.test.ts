import type { JsonSchema } from "@devmesh/contract-check/json-schema";
import { mesh as services, sidecars } from "@devmesh/contracts/mesh";
import type { Json } from "@devmesh/contracts/model/json";
import type { ServiceDeclaration } from "@devmesh/contracts/topology";
import { repository } from "@devmesh/supervisor/mesh/service-process";
import { eventually } from "@devmesh/testkit/eventually";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { Ajv2020 } from "ajv/dist/2020.js";
import { type RecordedMesh, startRecordedMesh } from "../src/old-client/fixtures.ts";
import { type OldClient, oldClient } from "../src/old-client/old-client.ts";
import { filledIn, type KnownContract, knownContracts } from "../src/old-client/recording.ts";
import { enrolDevice } from "../src/tenant.ts";

/** Clients of the released contracts, replayed from what they once sent, against the services of now (ADR 15). */
const known = await knownContracts(repository);
const byName = known.map((contract) => [contract.service, contract] as const);

/** What keeps a value from being what a released contract says, by pointer; empty when nothing does. */
const ajv = new Ajv2020({ strict: false, allErrors: true, validateFormats: false });
function strangeIn(value: Json, schema: JsonSchema): string[] {
  const validate = ajv.compile(schema);
  if (validate(value)) return [];
  return (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`);
}

describe("the recording of", () => {
  test.each(byName)("%s has every method of its contract, each once with an answer", (_, contract) => {
    const answered = contract.recording.calls.filter(({ error }) => error === undefined);
    expect([...new Set(answered.map(({ method }) => method))].sort()).toEqual(
      Object.keys(contract.surface.methods).sort(),
    );
  });

  test.each(byName)("%s has a job of each queue whose jobs it does", (_, { recording, surface }) => {
    expect(recording.jobs.map(({ queue }) => queue).sort()).toEqual(Object.keys(surface.consumes).sort());
  });
});

describe("against the services of now", () => {
  let recordedMesh: RecordedMesh;
  let client: OldClient;
  const heard = new Map<string, Json[]>();

  beforeAll(async () => {
    recordedMesh = await startRecordedMesh();
    client = await oldClient(recordedMesh.mesh, recordedMesh.madeUp);
    await listen();
  }, 120_000);
  afterAll(async () => {
    await client?.[Symbol.asyncDispose]();
    await recordedMesh?.[Symbol.asyncDispose]();
  });

  /** Events as each subscribed service receives them. */
  async function listen(): Promise<void> {
    for (const [listener, { subscribes }] of Object.entries<ServiceDeclaration>(services)) {
      for (const { events, names } of subscribes) {
        // A sidecar has no contract: it is released with a service's image.
        if (Object.hasOwn(sidecars, events.service)) continue;
        const surface = known.find(({ service }) => service === events.service)?.surface;
        for (const name of names) {
          const subject = surface?.events[name]?.subject;
          if (subject === undefined) throw new Error(`${events.service} says nothing of ${name}`);
          const payloads: Json[] = [];
          heard.set(`${events.service}.${name}`, payloads);
          const connection = await client.connectionOf(listener);
          await connection.subscribe(subject, ({ payload }) => payloads.push(JSON.parse(payload)));
        }
      }
    }
  }

  /** Publishes more than half of what the broker keeps while nobody takes it; the mesh then throttles the device. */
  async function fillBrokerFrom(id: string): Promise<void> {
    const hoarder = await enrolDevice(recordedMesh.mesh, id);
    const device = await hoarder.connect();
    const pid = await recordedMesh.mesh.pidOf("data");
    process.kill(pid, "SIGSTOP");
    try {
      for (let n = 0; n < 12; n++) await device.publish(`db/${id}/load`, "x".repeat(200_000), 1);
      await eventually(() => (heard.get("devices.throttled") ?? []).length > 0, { withinMs: 40_000 });
    } finally {
      process.kill(pid, "SIGCONT");
    }
  }

  describe.each(byName)(
    "a client of the released contract of %s",
    (_, { surface, recording }: KnownContract) => {
      const calls = recording.calls.map(
        (call) => [call.method, call.error ?? "what it expects", call] as const,
      );
      if (calls.length === 0) return;
      test.each(calls)("calls %s and gets %s", async (name, __, recorded) => {
        const method = surface.methods[name];
        if (method === undefined) throw new Error(`${name} is not in the contract`);
        expect(strangeIn(filledIn(recorded.request, client.madeUp), method.input)).toEqual([]);
        const answer = await client.call(method.subject, recorded);
        if ("reply" in answer) {
          expect(recorded.error ?? "an answer").toBe("an answer");
          expect(strangeIn(answer.reply, method.output)).toEqual([]);
        } else {
          expect(answer.error).toBe(recorded.error);
          const declared = method.errors[answer.error];
          expect(answer.code).toBe(declared?.code);
          if (declared?.details) expect(strangeIn(answer.details ?? null, declared.details)).toEqual([]);
        }
      });
    },
  );

  describe.each(byName)(
    "a producer of the released contract of %s",
    (_, { surface, recording }: KnownContract) => {
      if (recording.jobs.length === 0) return;
      test.each(recording.jobs.map((job) => [job.queue, job] as const))(
        "has its %s done",
        async (queue, recorded) => {
          const mailsTo = (address: string) =>
            recordedMesh.mail.mails.filter(({ to }) => to.includes(address)).length;
          const before = mailsTo("kim@example.com");
          const job = filledIn(recorded.job, client.madeUp);
          const consumed = surface.consumes[queue];
          if (consumed === undefined) throw new Error(`${queue} is not in the contract`);
          expect(strangeIn(job, consumed.job)).toEqual([]);
          const producer = await client.connectionOf(recorded.producer);
          await producer.requestJson(consumed.subject, job);
          await eventually(() => mailsTo("kim@example.com") === before + 1);
        },
      );
    },
  );

  describe("a listener of the released contract understands each", () => {
    // Calls led to all other events; this is what devices do, and who listens to what they publish.
    const leaving = new AbortController();
    beforeAll(async () => {
      const { url, masterKey } = recordedMesh.mesh;
      const headers = { authorization: `Bearer ${masterKey}`, accept: "text/event-stream" };
      const stream = await fetch(`${url}/api/v2/notify?data=1`, { headers, signal: leaving.signal });
      expect(stream.status).toBe(200);
      const visitor = await enrolDevice(recordedMesh.mesh, "old-visitor");
      const device = await visitor.connect();
      // The data service publishes records once it knows of a listener.
      await eventually(async () => {
        await device.publish("db/old-visitor/seen", "1", 1);
        return (heard.get("data.stored") ?? []).length > 0;
      });
      // What services cannot take of it, and a login that is refused.
      await device.publish("old-visitor/event/broken", "{", 1);
      await device.publish("db/old-visitor/large", "x".repeat(300_000), 1);
      await device.leave();
      await expect(visitor.connect("foreign")).rejects.toThrow();
      await fillBrokerFrom("old-hoarder");
    });
    afterAll(() => leaving.abort());

    const events = known.flatMap(({ service, surface }) =>
      Object.entries(surface.events)
        .filter(([name]) => isHeard(service, name))
        .map(([name, { payload }]) => [`${service}.${name}`, payload] as const),
    );
    test.each(events)("%s", async (name, payload) => {
      // The last step of a deletion is published some seconds after the first.
      const payloads = await eventually(() => (heard.get(name)?.length ? heard.get(name) : null), {
        withinMs: 40_000,
      });
      for (const one of payloads) expect(strangeIn(one, payload)).toEqual([]);
    });
  });
});

function isHeard(service: string, event: string): boolean {
  return Object.values<ServiceDeclaration>(services).some(({ subscribes }) =>
    subscribes.some(({ events, names }) => events.service === service && names.includes(event)),
  );
}
