import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { eventually } from "@devmesh/testkit/eventually";
import type { TestMesh } from "@devmesh/testkit/mesh";
import type { MqttDevice } from "@devmesh/testkit/mqtt-device";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import type { RestClient } from "../../src/rest-client.ts";
import { asMaster, type EnrolledDevice, enrolDevices } from "../../src/tenant.ts";

/** Calls, shadows and data of many devices at the same time: nothing lost, doubled, mixed up or complained about. */
export function load(shared: () => TestMesh): void {
  describe("many devices", () => {
    const ids = Array.from({ length: 50 }, (_, nth) => `load-${nth}`);
    const messagesEach = 20;
    const callsEach = 8;
    const changesEach = 4;

    let mesh: TestMesh;
    let master: RestClient;
    const devices: MqttDevice[] = [];

    beforeAll(async () => {
      mesh = shared();
      master = asMaster(mesh);
    });
    afterAll(async () => {
      await Promise.all(devices.map((device) => device.leave()));
    });

    /** A device that echoes calls, with its id, and reports what is desired. */
    async function connectEcho(enrolled: EnrolledDevice): Promise<void> {
      const { id } = enrolled;
      const device = await enrolled.connect();
      devices.push(device);
      await device.answerRpc(({ params }) => ({ result: { id, params } }));
      device.client.on("message", (topic, payload) => {
        if (topic !== `${id}/shadow/delta`) return;
        const { state } = JSON.parse(payload.toString());
        if (Object.keys(state).length === 0) return;
        device.client.publish(`${id}/shadow/update`, JSON.stringify({ state: { reported: state } }), {
          qos: 1,
        });
      });
      await device.subscribe(`${id}/shadow/delta`, 1);
    }

    /** All records after one, page by page. */
    async function recordsAfter(first: number): Promise<{ id: number; topic: string; message: string }[]> {
      const records = [];
      for (let after = first; ; after = records.at(-1).id) {
        const { json } = await master.get(`data?limit=1000&after=${after}`);
        if (json.length === 0) return records;
        records.push(...json);
      }
    }

    const upTo = (count: number) => Array.from({ length: count }, (_, nth) => nth);

    test("50 devices publish, are called and follow their shadows at once", async () => {
      const [last] = (await master.get("data?skip=-1")).json;
      await Promise.all((await enrolDevices(mesh, ids)).map(connectEcho));
      const publishing = devices.flatMap((device) =>
        upTo(messagesEach).map((nth) => device.publish(`db/${device.id}/n`, String(nth), 1)),
      );
      const calling = ids.map(async (id) => {
        const answers = [];
        for (const nth of upTo(callsEach)) {
          const { status, json } = await master.post(`devices/${id}/rpc/Echo?timeout=60000`, [nth]);
          answers.push([status, json]);
        }
        expect(answers).toEqual(upTo(callsEach).map((nth) => [200, { id, params: [nth] }]));
      });
      const changing = ids.map(async (id) => {
        for (const nth of upTo(changesEach)) {
          const change = { shadow: { state: { desired: { app: { nth } } } } };
          // On a busy machine a service may not answer in time: 504, after which the change is made again.
          await eventually(async () => {
            const { status } = await master.post(`devices/${id}`, change);
            expect([200, 504]).toContain(status);
            return status === 200;
          });
        }
      });
      await Promise.all([...publishing, ...calling, ...changing]);

      const published = ids.flatMap((id) => upTo(messagesEach).map((nth) => `db/${id}/n ${nth}`));
      const stored = await eventually(
        async () => {
          const records = await recordsAfter(last?.id ?? 0);
          return records.length >= published.length && records;
        },
        { everyMs: 200 },
      );
      expect(stored.map(({ topic, message }) => `${topic} ${message}`).sort()).toEqual(published.sort());
      await eventually(
        async () => {
          const { json } = await master.get("devices");
          const loaded = json.filter(({ id }: { id: string }) => ids.includes(id));
          return loaded.every(
            ({ shadow: { state } }: { shadow: { state: { delta?: object; reported: { app: unknown } } } }) =>
              state.delta === undefined &&
              JSON.stringify(state.reported.app) === JSON.stringify({ nth: changesEach - 1 }),
          );
        },
        { everyMs: 200 },
      );

      const logs = join(mesh.dataDir, "logs");
      const lines = (
        await Promise.all((await readdir(logs)).map((file) => readFile(join(logs, file), "utf8")))
      )
        .join("\n")
        .split("\n");
      expect(lines.filter((line) => /"level":"(?:error|fatal)"/.test(line))).toEqual([]);
    }, 120_000);
  });
}
