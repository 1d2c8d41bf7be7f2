import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { connect } from "node:net";
import { fileURLToPath } from "node:url";
import { connectPacket } from "@devmesh/testkit/connect-packet";
import { eventually } from "@devmesh/testkit/eventually";
import { connectIdleFleet } from "@devmesh/testkit/idle-fleet";
import type { TestMesh } from "@devmesh/testkit/mesh";
import type { MqttDevice } from "@devmesh/testkit/mqtt-device";
import { openWebSocket } from "@devmesh/testkit/notification-client";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "@jest/globals";
import { generate } from "mqtt-packet";
import { asMaster, type EnrolledDevice, enrolDevice, enrolDevices } from "../../src/tenant.ts";

/** One device attacks with its token what all share; another works meanwhile and must lose nothing. */
export function floods(shared: () => TestMesh): void {
  describe("a device that attacks", () => {
    let mesh: TestMesh;
    let calm: MqttDevice;
    let fleet: AsyncDisposable;
    let flooding: ChildProcess | undefined;
    beforeAll(async () => {
      mesh = shared();
      const idle = Array.from({ length: 300 }, (_, nth) => `idle-${nth}`);
      fleet = await connectIdleFleet(mesh.mqttUrl, await enrolDevices(mesh, idle));
      calm = await (await enrolDevice(mesh, "calm")).connect();
      await calm.answerRpc(({ params }) => ({ result: params }));
    }, 120_000);
    afterAll(async () => {
      await calm?.leave();
      await fleet?.[Symbol.asyncDispose]();
    });

    // Otherwise a flood that is not cut off would go on beside the next test.
    afterEach(() => void flooding?.kill("SIGKILL"));

    interface Flood {
      readonly topic: string;
      readonly bytes: number;
      readonly qos: 0 | 1;
      readonly count: number;
    }

    /** Runs the flood in a process; resolves with how it ended. */
    async function flood({ id, token }: EnrolledDevice, { topic, bytes, qos, count }: Flood) {
      flooding = fork(
        fileURLToPath(import.meta.resolve("../flood.ts")),
        [mesh.mqttUrl, id, topic, String(bytes), String(qos), String(count)],
        { env: { ...process.env, FLOOD_TOKEN: token }, execArgv: ["--disable-warning=ExperimentalWarning"] },
      );
      const [report] = (await once(flooding, "message")) as [{ outcome: "closed" | "sent"; sent: number }];
      return report;
    }

    const isObject = (data: unknown): data is Record<string, unknown> =>
      typeof data === "object" && data !== null;

    /** Publishes, is called and is read until `ended`; returns how much of it there was. */
    async function work(ended: Promise<unknown>): Promise<number> {
      const master = asMaster(mesh);
      let over = false;
      void ended.finally(() => {
        over = true;
      });
      let rounds = 0;
      for (; !over || rounds < 10; rounds++) {
        const [, called, read] = await Promise.all([
          calm.publish("db/calm/n", String(rounds), 1),
          master.post("devices/calm/rpc/echo?timeout=60000", { rounds }),
          master.get("devices/calm"),
        ]);
        expect([called.status, called.json, read.status]).toEqual([200, { rounds }, 200]);
      }
      return rounds;
    }

    test.each<[string, Flood["qos"], number, (id: string) => string, "messages" | "bytes"]>([
      ["replies", 0, 20, (id) => `${id}/r/rpc`, "messages"],
      ["refused-topics", 0, 20, (id) => `elsewhere/${id}`, "messages"],
      ["data", 1, 100_000, (id) => `db/${id}/blob`, "bytes"],
    ])(
      "a flood of %s is cut off and refused for a while, and another device loses nothing",
      async (kind, qos, bytes, topicOf, why) => {
        const attacker = await enrolDevice(mesh, `attacker-${kind}`);
        const notifications = await openWebSocket(mesh.url, "/api/v2/notify", { key: mesh.masterKey });
        const before = (await asMaster(mesh).get("data?device_id=calm&limit=5000")).json.length;
        const attack = flood(attacker, { topic: topicOf(attacker.id), bytes, qos, count: 10_000_000 });
        const rounds = await work(attack);
        expect((await attack).outcome).toBe("closed");
        await eventually(() =>
          notifications.frames.some(
            ({ name, id, data }) =>
              name === "throttled" && id === attacker.id && isObject(data) && data.why === why,
          ),
        );
        await expect(attacker.connect()).rejects.toThrow();
        expect(calm.client.connected).toBe(true);
        await eventually(async () => {
          const { json } = await asMaster(mesh).get("data?device_id=calm&limit=5000");
          return json.length === before + rounds;
        });
        const { json: history } = await asMaster(mesh).get(`devices/${attacker.id}/diagnostics`);
        expect(history).toContainEqual(expect.objectContaining({ name: "allowance_exceeded", reason: why }));
        expect(notifications.frames.filter(({ id }) => id === attacker.id).length).toBeLessThan(30);
        await using back = await eventually(() => attacker.connect(), { everyMs: 500 });
        expect(back.client.connected).toBe(true);
        notifications.leave();
      },
      180_000,
    );

    /** Publishes over a new connection and leaves; resolves with whether the login was accepted. */
    function publishAndLeave(
      { id, token }: EnrolledDevice,
      clientId: string,
      messages: number,
    ): Promise<boolean> {
      const message = generate({
        cmd: "publish",
        topic: `db/${id}/n`,
        payload: "x".repeat(20),
        qos: 0,
        dup: false,
        retain: false,
      });
      return new Promise((resolve, reject) => {
        let accepted = false;
        const socket = connect({ host: "127.0.0.1", port: Number(new URL(mesh.mqttUrl).port) });
        socket.once("data", (connack) => {
          accepted = connack[3] === 0;
          socket.end(accepted ? Buffer.concat(Array.from({ length: messages }, () => message)) : "");
        });
        socket.on("error", reject);
        socket.on("close", () => resolve(accepted));
        socket.write(connectPacket(id, token, clientId));
      });
    }

    test("a flood over short connections, each under another client id, is cut off", async () => {
      const attacker = await enrolDevice(mesh, "attacker-short");
      const attack = async () => {
        // Three of them hold more than a device may send at once.
        for (let n = 0; n < 60; n++)
          if (!(await publishAndLeave(attacker, `${attacker.id}:${n}`, 2_000).catch(() => false))) return n;
        return null;
      };
      const attacked = attack();
      await work(attacked);
      expect(await attacked).toBeGreaterThanOrEqual(3);
      await expect(attacker.connect()).rejects.toThrow();
      const { json: history } = await asMaster(mesh).get(`devices/${attacker.id}/diagnostics`);
      expect(history).toContainEqual(
        expect.objectContaining({ name: "allowance_exceeded", reason: "messages" }),
      );
      expect(calm.client.connected).toBe(true);
    }, 180_000);

    test("a session has at most 16 filters at QoS 1", async () => {
      const attacker = await enrolDevice(mesh, "subscriber");
      await using device = await attacker.connect();
      const granted: number[] = [];
      for (let n = 0; n < 18; n++) granted.push(await device.subscribe(`subscriber/${n}`, 1));
      expect(granted).toEqual([...Array.from({ length: 16 }, () => 1), 128, 128]);
    });
  });
}
