import { describeOverMongodb } from "@devmesh/testkit/describe-over-mongodb";
import { eventually } from "@devmesh/testkit/eventually";
import { describe, expect, test } from "@jest/globals";
import { call, openWebhooks, startReceiver } from "./webhooks-fixture.ts";

/** How often everything is killed. One round is for each run of the tests; by hand there may be many. */
const rounds = Number(process.env.WEBHOOK_KILLS ?? 1);
const eventsOfRound = 1_000;
const recordsOfRound = 200;
const now = () => new Date().toISOString();

const title =
  "every event and record arrives, none under two ids, while service, broker and receiver are killed";

function describeKills(storeUrl: () => string | undefined): void {
  test(
    title,
    async () => {
      await using mesh = await openWebhooks(storeUrl());
      let receiver = await startReceiver();
      const { port } = receiver;
      let service = await mesh.start();
      await mesh.client.createWebhook({ url: receiver.url("/events"), events: ["offline"] }, call());
      const records = { batch: 20, wait_ms: 0 };
      await mesh.client.createWebhook({ url: receiver.url("/records"), events: ["data"], records }, call());
      await eventually(() => mesh.followed.has("all"));

      const idsOf = new Map<string, Set<string>>();
      const bodyOf = new Map<string, string>();
      const recordIds: number[] = [];
      const changed: string[] = [];
      /** Keeps what a receiver took, before it is gone. */
      function note(): void {
        for (const { path, body, headers } of receiver.received.splice(0)) {
          const webhookId = String(headers["webhook-id"]);
          if (path === "/events") {
            const { type, subject } = JSON.parse(body);
            if (type === "devmesh.offline")
              idsOf.set(subject, (idsOf.get(subject) ?? new Set()).add(webhookId));
            continue;
          }
          if ((bodyOf.get(webhookId) ?? body) !== body) changed.push(webhookId);
          bodyOf.set(webhookId, body);
          const ids = JSON.parse(body).map(({ data }: { data: { id: number } }) => data.id);
          recordIds.push(...ids.filter((id: number) => !recordIds.includes(id)));
        }
      }

      let published = 0;
      /** Publishes until the stream has acknowledged each, once. */
      async function publish(count: number): Promise<void> {
        for (const until = published + count; published < until; ) {
          const id = `d${published}`;
          const outcome = await mesh.deviceEvents.offline({ id, timestamp: now() }, { dedupeId: id });
          if (outcome === "ok") published++;
          else await new Promise((resolve) => setTimeout(resolve, 100));
        }
      }
      function store(count: number): void {
        for (let left = count; left > 0; left--) {
          const id = mesh.records.length + 1;
          mesh.records.push({
            id,
            timestamp: now(),
            device_id: "pump",
            topic: "db/pump/t",
            message: `m${id}`,
          });
        }
      }
      /** Kills the service between a request and its answer, which the receiver has taken if `taken`. */
      async function killWithin(path: string, taken: boolean): Promise<void> {
        await new Promise<void>((resolve, reject) => {
          receiver.answers.set(path, (request) => {
            receiver.answers.delete(path);
            if (taken) receiver.received.push(request);
            service.end("SIGKILL").then(() => resolve(), reject);
            return 0;
          });
        });
        service = await mesh.start();
      }

      for (let round = 0; round < rounds; round++) {
        const publishing = publish(eventsOfRound);
        await killWithin("/events", round % 2 === 0);
        store(recordsOfRound);
        await killWithin("/records", round % 2 === 0);
        await publishing;
        const meanwhile = publish(eventsOfRound / 2);
        await mesh.broker.kill();
        await mesh.broker.restart();
        await meanwhile;
        note();
        await receiver[Symbol.asyncDispose]();
        const more = publish(eventsOfRound / 2);
        store(recordsOfRound);
        receiver = await startReceiver(port);
        await more;
        await eventually(
          () => {
            note();
            return idsOf.size >= published && recordIds.length >= mesh.records.length;
          },
          { withinMs: 150_000 },
        );
      }
      expect(idsOf.size).toBe(published);
      expect([...idsOf].filter(([, ids]) => ids.size !== 1)).toEqual([]);
      expect(recordIds).toEqual(mesh.records.map(({ id }) => id));
      expect(changed).toEqual([]);
      await service.end();
      await receiver[Symbol.asyncDispose]();
    },
    60_000 + rounds * 240_000,
  );
}

describe("over SQLite", () => describeKills(() => undefined));
describeOverMongodb("over MongoDB", (mongodb) => describeKills(() => mongodb().newDatabase().storeUrl));
