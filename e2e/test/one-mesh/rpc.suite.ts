import type { CallFrame } from "@devmesh/contracts/mqtt";
import { eventually } from "@devmesh/testkit/eventually";
import type { TestMesh } from "@devmesh/testkit/mesh";
import type { MqttDevice } from "@devmesh/testkit/mqtt-device";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import type { RestClient } from "../../src/rest-client.ts";
import { asMaster, type EnrolledDevice, enrolDevice } from "../../src/tenant.ts";

/** The RPC table of the public contract, each row reached for real. */
export function rpc(shared: () => TestMesh): void {
  describe("RPC", () => {
    let mesh: TestMesh;
    let master: RestClient;
    let lamp: EnrolledDevice;
    let rival: EnrolledDevice;
    let device: MqttDevice;
    const seen: CallFrame[] = [];

    beforeAll(async () => {
      mesh = shared();
      master = asMaster(mesh);
      lamp = await enrolDevice(mesh, "lamp");
      rival = await enrolDevice(mesh, "rival");
      device = await lamp.connect();
      await device.answerRpc(({ id, src, method, params }) => {
        seen.push({ id, src, method, params });
        switch (method) {
          case "Echo":
            return { result: params ?? null };
          case "Fail":
            return { error: { code: 500, message: "lamp broken" } };
          case "Old.Missing":
            return { error: { code: -32601, message: "method not found" } };
          case "Silent":
            return null;
          case "Bare":
            return {};
          default:
            return { error: { code: 404, message: "no handler" } };
        }
      });
    });
    afterAll(async () => {
      await device?.leave();
    });

    const reasonOf = async (answer: ReturnType<RestClient["get"]>) => {
      const { status, json } = await answer;
      return [status, json?.reason];
    };

    describe("an error of the table", () => {
      test("no such device: 404 device_not_found", async () => {
        expect(await reasonOf(master.get("devices/nobody/rpc/Echo"))).toEqual([404, "device_not_found"]);
      });
      test("device not connected: 409 device_offline, without waiting", async () => {
        const started = performance.now();
        expect(await reasonOf(master.get("devices/rival/rpc/Echo?timeout=30000"))).toEqual([
          409,
          "device_offline",
        ]);
        expect(performance.now() - started).toBeLessThan(20_000);
      });
      test("connected, but no answer in time: 504 rpc_timeout", async () => {
        expect(await reasonOf(master.get("devices/lamp/rpc/Silent?timeout=200"))).toEqual([
          504,
          "rpc_timeout",
        ]);
      });
      test.each(["Nope", "Old.Missing"])("no such function (%s): 404 function_not_found", async (func) => {
        expect(await reasonOf(master.get(`devices/lamp/rpc/${func}`))).toEqual([404, "function_not_found"]);
      });
      test("the device's own error: 502 device_error with its code and message", async () => {
        const { status, json } = await master.get("devices/lamp/rpc/Fail");
        expect([status, json.reason, json.error]).toEqual([
          502,
          "device_error",
          { code: 500, message: "lamp broken" },
        ]);
      });
      test("an unreadable answer: 502 bad_device_reply", async () => {
        const odd = await rival.connect();
        await odd.subscribe("rival/rpc");
        odd.client.on("message", (_topic, payload) => {
          const { id } = JSON.parse(payload.toString("utf8"));
          odd.client.publish("rival/r/rpc", JSON.stringify({ id, error: "just a text" }));
        });
        expect(await reasonOf(master.get("devices/rival/rpc/Echo"))).toEqual([502, "bad_device_reply"]);
        await odd.leave();
        await eventually(async () => !(await master.get("devices/rival")).json.online);
      });
      test("a frame over 4 KB: 413 frame_too_large", async () => {
        expect(await reasonOf(master.post("devices/lamp/rpc/Echo", { text: "x".repeat(5000) }))).toEqual([
          413,
          "frame_too_large",
        ]);
      });
      test.each(["timeout=99", "timeout=60001", "timeout=x", "timeout=1&timeout=2"])(
        "%s: 400",
        async (query) => {
          expect((await master.get(`devices/lamp/rpc/Echo?${query}`)).status).toBe(400);
        },
      );
      test.each([`"text"`, "5", "null", "true"])(
        "a body that is neither object nor array (%s): 400",
        async (body) => {
          expect((await master.post("devices/lamp/rpc/Echo", body)).status).toBe(400);
        },
      );
    });

    test("the time-out that the caller gives is obeyed, and not shortened by another", async () => {
      for (const timeout of [300, 1500]) {
        const started = performance.now();
        expect((await master.get(`devices/lamp/rpc/Silent?timeout=${timeout}`)).status).toBe(504);
        expect(performance.now() - started).toBeGreaterThanOrEqual(timeout - 5);
      }
    });

    test.each([{ a: 1 }, [], {}, [1, "zwei", null], { nested: { deep: [true] } }])(
      "parameters reach the device and the result comes back as they are: %j",
      async (params) => {
        expect((await master.post("devices/lamp/rpc/Echo", params)).json).toEqual(params);
      },
    );

    test("a call without parameters carries none, and an id that firmware can parse", async () => {
      seen.length = 0;
      const answer = await master.get("devices/lamp/rpc/Echo");
      expect([answer.status, answer.text]).toEqual([200, "null"]);
      expect(seen[0]).toMatchObject({
        method: "Echo",
        src: expect.stringMatching(/^lamp\/r\/[A-Za-z0-9_-]+$/),
      });
      expect(seen[0]).not.toHaveProperty("params", expect.anything());
      expect(Number.isInteger(seen[0]?.id) && (seen[0]?.id ?? 0) < 2 ** 31).toBe(true);
    });

    test("an answer with neither result nor error is 200 null", async () => {
      const answer = await master.get("devices/lamp/rpc/Bare");
      expect([answer.status, answer.text]).toEqual([200, "null"]);
    });

    test("a device that answers on ID/r/rpc, as the older firmware does, is heard", async () => {
      const old = await rival.connect();
      await old.answerRpc(() => ({ result: 7 }), "mdash");
      expect((await master.get("devices/rival/rpc/sum")).json).toBe(7);
      await old.leave();
      await eventually(async () => !(await master.get("devices/rival")).json.online);
    });

    test("a device that subscribes like Mongoose OS runs each call once", async () => {
      const mongoose = await rival.connect();
      let runs = 0;
      await mongoose.subscribe("rival/rpc", 1);
      expect(await mongoose.subscribe("rival/rpc/#", 1)).toBe(128);
      mongoose.client.on("message", (_topic, payload) => {
        runs++;
        const { id, src } = JSON.parse(payload.toString("utf8"));
        mongoose.client.publish(`${src}/rpc`, JSON.stringify({ id, src: "rival", dst: src, result: runs }), {
          qos: 1,
        });
      });
      for (const run of [1, 2, 3]) expect((await master.get("devices/rival/rpc/run")).json).toBe(run);
      expect(runs).toBe(3);
      await mongoose.leave();
      await eventually(async () => !(await master.get("devices/rival")).json.online);
    });

    test("200 calls answered out of order each get their own answer", async () => {
      const shuffled = await rival.connect();
      const waiting: { frame: CallFrame; topic: string }[] = [];
      await shuffled.subscribe("rival/rpc");
      shuffled.client.on("message", (_topic, payload) => {
        const frame: CallFrame = JSON.parse(payload.toString("utf8"));
        waiting.push({ frame, topic: `${frame.src}/rpc` });
        if (waiting.length < 200) return;
        for (const { frame, topic } of waiting.reverse()) {
          shuffled.client.publish(topic, JSON.stringify({ id: frame.id, result: frame.params }));
        }
      });
      const answers = await Promise.all(
        Array.from({ length: 200 }, (_, at) => master.post("devices/rival/rpc/Echo?timeout=20000", { at })),
      );
      expect(answers.map(({ json }) => json)).toEqual(Array.from({ length: 200 }, (_, at) => ({ at })));
      await shuffled.leave();
      await eventually(async () => !(await master.get("devices/rival")).json.online);
    });

    test("a reply forged by another device is ignored", async () => {
      const forger = await rival.connect();
      const call = master.get("devices/lamp/rpc/Silent?timeout=1500");
      const { id, src } = await eventually(() => seen.findLast(({ method }) => method === "Silent"));
      for (const topic of [
        `${src}/rpc`,
        "lamp/r/rpc",
        `${src.replace("lamp", "rival")}/rpc`,
        "rival/r/rpc",
      ]) {
        await Promise.race([
          forger.publish(topic, { id, result: "forged" }, 1).catch(() => null),
          forger.closed(),
        ]);
      }
      expect(await reasonOf(call)).toEqual([504, "rpc_timeout"]);
      await forger.leave().catch(() => null);
    });

    test("a device that goes away during a call ends it as device_offline, long before the time-out", async () => {
      const leaver = await rival.connect();
      await leaver.answerRpc(() => null);
      const call = reasonOf(master.get("devices/rival/rpc/Slow?timeout=60000"));
      await leaver.awaitMessage("rival/rpc");
      await leaver.leave();
      expect(await call).toEqual([409, "device_offline"]);
    });
  });
}
