import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { systemClock } from "@devmesh/service-kit/clock";
import { createIdSource } from "@devmesh/service-kit/sortable-id";
import { openMongo } from "@devmesh/store/mongodb";
import { type MongoUrl, parseStoreUrl } from "@devmesh/store/store-url";
import { describeOverMongodb } from "@devmesh/testkit/describe-over-mongodb";
import { eventually } from "@devmesh/testkit/eventually";
import type { StartedService } from "@devmesh/testkit/service-process";
import { tempFolder } from "@devmesh/testkit/temp-folder";
import { afterAll, describe, expect, test } from "@jest/globals";
import { type AlertHistory, observe } from "../src/evaluation/alert-states.ts";
import { type AlertsMesh, call, type Step, startAlertsMesh } from "./alerts-mesh.ts";
import { ruleOn } from "./evaluation-fixture.ts";
import { randomNumbers } from "./random-numbers.ts";

/** Kills for each store; a whole run has 200. */
const kills = Number(process.env.ALERT_KILLS ?? 4);

/** A channel gets three messages in a minute: with so many rules, each is used again after more than that. */
const rules = Math.min(kills, 45);
const roundMs = 2_000;

const steps: readonly Step[] = ["record", "row", "message", "accepted"];
const when = { kind: "value", topic: "k", pointer: "", is: ">", than: 5 } as const;
const devices = ["fan", "freezer", "lamp"] as const;

interface Killer {
  /** Ends the process that evaluates, at once; resolves when another one evaluates or will. */
  kill(): Promise<void>;
}

function isAsIfNeverKilled(start: (mesh: AlertsMesh, parts: AsyncDisposableStack) => Promise<Killer>): void {
  const parts = new AsyncDisposableStack();
  afterAll(() => parts.disposeAsync(), 60_000);

  test(
    `${kills} deaths at the steps of alerts leave the alerts and messages of a service that never died`,
    async () => {
      const mesh = parts.use(await startAlertsMesh());
      const killer = await start(mesh, parts);
      const { client, deliveries } = mesh;
      const newId = createIdSource(systemClock);
      const random = randomNumbers(1);
      const used = [];
      for (let at = 0; at < rules; at++) {
        const webhook = {
          kind: "webhook",
          name: "chat",
          webhook_id: `wh_${at}`,
          format: "cloudevents",
        } as const;
        const channel = await client.createChannel({ channel: webhook }, call());
        const rule = { name: "k", when: { ...when, topic: `k${at}` }, notify: [channel.id] };
        used.push(await client.createRule({ rule }, call()));
      }
      const probe = await client.createRule(
        { rule: { name: "probe", when: { ...when, topic: "probe" } } },
        call(),
      );
      await eventually(async () => {
        mesh.publish("pump", "probe", 9);
        return (await mesh.alertsOf({ rule_id: probe.id })).length > 0;
      });

      const expected = new Map<string, AlertHistory>();
      for (let round = 0; round < kills; round++) {
        const began = Date.now();
        const rule = used[round % rules];
        const step = steps[round % steps.length];
        if (rule === undefined || step === undefined) throw new Error("there is no such rule");
        const about =
          step === "row" ? rule.id : step === "record" ? `k${round % rules}` : `wh_${round % rules}`;
        const { promise: killed, resolve, reject } = Promise.withResolvers<void>();
        mesh.onStep = (made, of) => {
          if (made !== step || of !== about) return;
          mesh.onStep = () => undefined;
          // A later moment of each step, too: what follows it may have begun.
          const laterMs = random(4) * 4;
          if (laterMs === 0) killer.kill().then(resolve, reject);
          else
            sleep(laterMs)
              .then(() => killer.kill())
              .then(resolve, reject);
        };
        // The last message about a device is another one than in the round before.
        const at = Date.now();
        for (let n = 0; n < 9; n++)
          for (const [index, device] of devices.entries()) {
            const isLast = n === 8;
            const fires = (Math.floor(round / rules) + index) % 2 === 0;
            const value = isLast ? (fires ? 9 : 1) : random(11);
            mesh.publish(device, `k${round % rules}`, value, at + n);
            const key = `${rule.id} ${device}`;
            const seen = { holds: value > 5, at: at + n, record: mesh.records.length, value };
            const before = expected.get(key) ?? { open: null, cleared: null };
            expected.set(key, observe(before, { ...ruleOn(when), ...rule }, device, seen, newId));
          }
        await killed;
        const wanted = devices.flatMap((device) => {
          const { open, cleared } = expected.get(`${rule.id} ${device}`) ?? { open: null, cleared: null };
          const alert = open ?? cleared;
          return alert === null
            ? []
            : [
                {
                  device_id: device,
                  state: alert.state,
                  flaps: alert.flaps,
                  value: alert.value,
                  fired_at: new Date(alert.fired_at ?? 0).toISOString(),
                  cleared_at: alert.cleared_at === null ? null : new Date(alert.cleared_at).toISOString(),
                },
              ];
        });
        await eventually(
          async () => {
            const found = await mesh.alertsOf({ rule_id: rule.id });
            const sorted = found.toSorted((one, other) =>
              String(one.device_id) < String(other.device_id) ? -1 : 1,
            );
            expect(sorted).toMatchObject(wanted);
            const told = deliveries
              .filter(({ webhook_id }) => webhook_id === `wh_${round % rules}`)
              .flatMap(({ event }) => (event.data as { alerts: unknown[] }).alerts);
            for (const alert of sorted) {
              const { note: _, acknowledged_at: __, acknowledged_by: ___, ...shown } = alert;
              expect(told).toContainEqual(expect.objectContaining(shown));
            }
            return true;
          },
          { withinMs: 90_000 },
        );
        await sleep(Math.max(0, began + roundMs - Date.now()));
      }
    },
    60_000 + kills * 60_000,
  );
}

describe("a service with SQLite", () =>
  isAsIfNeverKilled(async (mesh, parts) => {
    const folder = parts.use(await tempFolder());
    const storeUrl = `sqlite:${join(folder.path, `${randomUUID()}.db`)}`;
    let service = await mesh.start(storeUrl);
    parts.defer(() => service[Symbol.asyncDispose]());
    return {
      async kill() {
        service.child.kill("SIGKILL");
        await service.ended;
        service = await mesh.start(storeUrl);
      },
    };
  }));

describeOverMongodb("two services with MongoDB", (mongodb) =>
  isAsIfNeverKilled(async (mesh, parts) => {
    const { storeUrl } = parts.use(mongodb().newDatabase());
    const store = await openMongo(parseStoreUrl(storeUrl) as MongoUrl, [], new AbortController().signal);
    parts.defer(() => store.close());
    const replicas: StartedService[] = await Promise.all([mesh.start(storeUrl), mesh.start(storeUrl)]);
    parts.defer(async () => {
      await Promise.all(replicas.map((replica) => replica[Symbol.asyncDispose]()));
    });
    const findLeader = (among: readonly number[]) =>
      eventually(async () => {
        for (const at of among) if ((await replicas[at]?.metric("devmesh_alerts_leader")) === 1) return at;
        return null;
      });
    let leader = await findLeader([0, 1]);
    return {
      async kill() {
        const dead = leader;
        replicas[dead]?.child.kill("SIGKILL");
        await replicas[dead]?.ended;
        // As when its lease has ended: the other one takes over.
        await store.db.collection("leases").deleteMany({});
        leader = await findLeader([1 - dead]);
        replicas[dead] = await mesh.start(storeUrl);
      },
    };
  }),
);
