import type { CallFrame } from "@devmesh/contracts/mqtt";
import { rpcEvents } from "@devmesh/contracts/rpc-bridge";
import { subscribe } from "@devmesh/service-kit/events/subscription";
import { eventually } from "@devmesh/testkit/eventually";
import type { MqttDevice, RpcAnswer } from "@devmesh/testkit/mqtt-device";
import { afterEach, describe, expect, test } from "@jest/globals";
import type { SharedBridge } from "../bridge-fixture.ts";

/** Suite over a bridge with its default settings: device calls. */
export function deviceCalls(shared: SharedBridge): void {
  describe("device calls", () => {
    const connected: MqttDevice[] = [];

    afterEach(async () => {
      await Promise.all(connected.splice(0).map((device) => device.leave()));
      shared.mesh.registry.known.clear();
      shared.mesh.registry.beforePresence = () => undefined;
    });

    async function connect(id: string): Promise<MqttDevice> {
      const device = await shared.mesh.connect(id);
      connected.push(device);
      return device;
    }

    /** In this time, in milliseconds, a call ends that does not wait for its own; generous to a busy machine. */
    const atOnceMs = 10_000;

    /** A device that answers each call on its own terms. */
    async function answering(
      id: string,
      answer: (frame: CallFrame) => RpcAnswer | Promise<RpcAnswer>,
      convention?: "mdash" | "mongoose-os",
    ): Promise<MqttDevice> {
      const device = await connect(id);
      await device.answerRpc(answer, convention);
      return device;
    }

    /** A device that answers each call with another payload. */
    async function replying(id: string, payload: (frame: CallFrame) => string | Buffer): Promise<MqttDevice> {
      const device = await connect(id);
      await device.subscribe(`${id}/rpc`);
      device.client.on("message", (_topic, frame) => {
        const call = JSON.parse(frame.toString()) as CallFrame;
        void device.publish(`${call.src}/rpc`, payload(call));
      });
      return device;
    }

    /**
     * How long calls take to fail as `rpc_timeout`, in milliseconds: so many that one of them took `most` at most,
     * since what a busy machine adds to the others is not the bridge's.
     */
    async function timesToFail(timeout_ms: number, most: number): Promise<number[]> {
      const took: number[] = [];
      await eventually(async () => {
        const startedAt = performance.now();
        expect(await failing(shared.mesh.call({ device_id: "pump", timeout_ms }))).toMatchObject({
          code: "deadline_exceeded",
          reason: "rpc_timeout",
        });
        took.push(performance.now() - startedAt);
        return Math.min(...took) <= most;
      });
      return took;
    }

    const failing = async (call: Promise<unknown>) =>
      await call.then(
        () => {
          throw new Error("the call succeeded");
        },
        (error: unknown) => error,
      );

    describe("a device call", () => {
      test.each(["mongoose-os", "mdash"] as const)("is answered by the %s convention", async (convention) => {
        await answering("pump", ({ method, params }) => ({ result: { method, params } }), convention);
        expect(
          await shared.mesh.call({ device_id: "pump", method: "Fan.Set", params: { speed: 3 } }),
        ).toEqual({
          method: "Fan.Set",
          params: { speed: 3 },
        });
      });

      test.each([null, false, 0, "", [], {}])("may have the result %j", async (result) => {
        await answering("pump", () => ({ result }));
        expect(await shared.mesh.call({ device_id: "pump" })).toEqual(result);
      });

      test("without a result is null", async () => {
        await replying("pump", ({ id }) => JSON.stringify({ id }));
        expect(await shared.mesh.call({ device_id: "pump" })).toBeNull();
      });

      test("sends params only when there are some, and empty ones as they are", async () => {
        const device = await answering("pump", () => ({ result: true }));
        await shared.mesh.call({ device_id: "pump" });
        await shared.mesh.call({ device_id: "pump", params: {} });
        await shared.mesh.call({ device_id: "pump", params: [] });
        const frames = device.messages.map(({ payload }) => JSON.parse(payload) as CallFrame);
        expect(frames.map((frame) => frame.params)).toEqual([undefined, {}, []]);
        expect(frames.map((frame) => Object.keys(frame).sort().join())).toEqual([
          "id,method,src",
          "id,method,params,src",
          "id,method,params,src",
        ]);
        expect(frames[0]?.src).toBe("pump/r/one");
      });

      test("to a device that does not exist is device_not_found at once", async () => {
        const startedAt = performance.now();
        expect(await failing(shared.mesh.call({ device_id: "nobody" }))).toMatchObject({
          code: "not_found",
          reason: "device_not_found",
        });
        expect(performance.now() - startedAt).toBeLessThan(atOnceMs);
      });

      test("to a device without a connection is device_offline at once", async () => {
        shared.mesh.registry.add("valve", { online: false });
        const startedAt = performance.now();
        expect(await failing(shared.mesh.call({ device_id: "valve" }))).toMatchObject({
          code: "conflict",
          reason: "device_offline",
        });
        expect(performance.now() - startedAt).toBeLessThan(atOnceMs);
      });

      test.each([100, 400])("that is not answered in %i ms is rpc_timeout, to 50 ms", async (timeout_ms) => {
        await answering("pump", () => null);
        const took = await timesToFail(timeout_ms, timeout_ms + 50);
        expect(Math.min(...took)).toBeGreaterThanOrEqual(timeout_ms - 1);
      });

      test("ends in its time also when the registry hangs", async () => {
        await connect("pump");
        shared.mesh.registry.beforePresence = () => new Promise(() => undefined);
        await timesToFail(150, 200);
      });

      test.each([404, -32601])("that the device answers with code %i is function_not_found", async (code) => {
        await answering("pump", () => ({ error: { code, message: "No handler" } }));
        expect(await failing(shared.mesh.call({ device_id: "pump" }))).toMatchObject({
          code: "not_found",
          reason: "function_not_found",
        });
      });

      test("that the device answers with an error carries the device's own code and message", async () => {
        await answering("pump", () => ({ error: { code: -7, message: "valve stuck" } }));
        expect(await failing(shared.mesh.call({ device_id: "pump" }))).toMatchObject({
          code: "internal",
          reason: "device_error",
          details: { code: -7, message: "valve stuck" },
        });
      });

      test.each<[string, (frame: CallFrame) => string | Buffer]>([
        ["no JSON after its id", ({ id }) => `{"id":${id},"result":nan}`],
        ["an error without code", ({ id }) => JSON.stringify({ id, error: "stuck" })],
        ["more than the mesh can carry", ({ id }) => JSON.stringify({ id, result: "x".repeat(600_000) })],
        [
          "a nesting too deep to write again",
          ({ id }) => `{"id":${id},"result":${"[".repeat(100_000)}${"]".repeat(100_000)}}`,
        ],
      ])("that the device answers with %s is bad_device_reply", async (_what, payload) => {
        await replying("pump", payload);
        expect(await failing(shared.mesh.call({ device_id: "pump" }))).toMatchObject({
          code: "internal",
          reason: "bad_device_reply",
        });
      });

      test("whose frame would be over 4 KB is frame_too_large and never reaches the device", async () => {
        const device = await answering("pump", () => ({ result: true }));
        expect(
          await failing(shared.mesh.call({ device_id: "pump", params: { text: "x".repeat(4_096) } })),
        ).toMatchObject({
          code: "invalid_argument",
          reason: "frame_too_large",
        });
        expect(await shared.mesh.call({ device_id: "pump", params: { text: "x".repeat(3_900) } })).toBe(true);
        expect(device.messages).toHaveLength(1);
      });

      test("ends as device_offline as soon as presence shows that the device went", async () => {
        const device = await answering("pump", () => null);
        const call = failing(shared.mesh.call({ device_id: "pump" }));
        await device.awaitMessage("pump/rpc");
        const startedAt = performance.now();
        shared.mesh.registry.add("pump", { online: false });
        await shared.mesh.registry.events.offline({ id: "pump", timestamp: new Date().toISOString() });
        expect(await call).toMatchObject({ code: "conflict", reason: "device_offline" });
        expect(performance.now() - startedAt).toBeLessThan(atOnceMs);
      });

      test("asks the registry about a device once, until the device goes", async () => {
        let questions = 0;
        await answering("turbine", () => ({ result: "here" }));
        shared.mesh.registry.beforePresence = () => void questions++;
        for (let nth = 0; nth < 3; nth++)
          expect(await shared.mesh.call({ device_id: "turbine" })).toBe("here");
        expect(questions).toBe(1);
        await shared.mesh.registry.events.offline({ id: "turbine", timestamp: new Date().toISOString() });
        await eventually(async () => {
          expect(await shared.mesh.call({ device_id: "turbine" })).toBe("here");
          return questions === 2;
        });
        shared.mesh.registry.beforePresence = () => undefined;
      });

      test("to a device that has just gone is device_offline at once, before its event arrives", async () => {
        const device = await answering("crane", () => ({ result: "here" }));
        expect(await shared.mesh.call({ device_id: "crane" })).toBe("here");
        await device.leave();
        shared.mesh.registry.add("crane", { online: false });
        const startedAt = performance.now();
        expect(await failing(shared.mesh.call({ device_id: "crane" }))).toMatchObject({
          reason: "device_offline",
        });
        expect(performance.now() - startedAt).toBeLessThan(atOnceMs);
      });

      test("to a device that has just been deleted is device_not_found at once, before its event arrives", async () => {
        const device = await answering("winch", () => ({ result: "here" }));
        expect(await shared.mesh.call({ device_id: "winch" })).toBe("here");
        await device.leave();
        shared.mesh.registry.known.delete("winch");
        const startedAt = performance.now();
        expect(await failing(shared.mesh.call({ device_id: "winch" }))).toMatchObject({
          reason: "device_not_found",
        });
        expect(performance.now() - startedAt).toBeLessThan(atOnceMs);
      });

      test("to an online device that does not subscribe to calls waits for its time", async () => {
        await connect("mute");
        for (let nth = 0; nth < 2; nth++)
          expect(await failing(shared.mesh.call({ device_id: "mute", timeout_ms: 200 }))).toMatchObject({
            reason: "rpc_timeout",
          });
      });

      test("to a device that has gone without a report is device_offline soon, though it seems to be online", async () => {
        shared.mesh.registry.add("ghost", { online: true });
        const startedAt = performance.now();
        expect(await failing(shared.mesh.call({ device_id: "ghost" }))).toMatchObject({
          reason: "device_offline",
        });
        expect(performance.now() - startedAt).toBeLessThan(atOnceMs);
      });

      test("to a connected device that a busy nats-server left out of one listing reaches it", async () => {
        const device = await connect("hidden");
        const list = shared.mesh.registry.connectedClientIds;
        let listings = 0;
        shared.mesh.registry.connectedClientIds = async (id) => (++listings === 1 ? [] : await list(id));
        const call = shared.mesh.call({ device_id: "hidden" });
        call.catch(() => undefined);
        await eventually(() => listings === 2);
        shared.mesh.registry.connectedClientIds = list;
        await device.answerRpc(() => ({ result: "here" }));
        expect(await call).toBe("here");
      });

      test("that nobody received reaches the device when it has subscribed again, once", async () => {
        const device = await connect("mover");
        let questions = 0;
        shared.mesh.registry.beforePresence = () => void questions++;
        const calls = [1, 2, 3].map(() => shared.mesh.call({ device_id: "mover" }));
        // Each asks before it sends its frame, and again when nobody received that.
        await eventually(() => questions >= 2 * calls.length);
        await device.answerRpc(({ id }) => ({ result: id }));
        const answers = await Promise.all(calls);
        expect(new Set(answers).size).toBe(calls.length);
        const frames = device.messages.filter(({ topic }) => topic === "mover/rpc");
        expect(frames).toHaveLength(calls.length);
      });

      test("ends as device_not_found as soon as its device is deleted", async () => {
        const device = await answering("pump", () => null);
        const call = failing(shared.mesh.call({ device_id: "pump" }));
        await device.awaitMessage("pump/rpc");
        const startedAt = performance.now();
        shared.mesh.registry.known.delete("pump");
        await shared.mesh.registry.events.deleted({ id: "pump", timestamp: new Date().toISOString() });
        expect(await call).toMatchObject({ code: "not_found", reason: "device_not_found" });
        expect(performance.now() - startedAt).toBeLessThan(atOnceMs);
      });

      test("goes on when the news that its device went is older than the device's return", async () => {
        const device = await connect("pump");
        await device.subscribe("pump/rpc");
        const call = shared.mesh.call({ device_id: "pump" });
        const { id, src } = JSON.parse((await device.awaitMessage("pump/rpc")).payload) as CallFrame;
        const asked = Promise.withResolvers<void>();
        shared.mesh.registry.beforePresence = () => asked.resolve();
        await shared.mesh.registry.events.offline({ id: "pump", timestamp: new Date().toISOString() });
        await asked.promise;
        shared.mesh.registry.beforePresence = () => undefined;
        await device.publish(`${src}/rpc`, { id, result: "back again" }, 1);
        expect(await call).toBe("back again");
      });

      test("sent before another connection took its device over may be answered on the new one", async () => {
        const device = await connect("pump");
        await device.subscribe("pump/rpc");
        const call = shared.mesh.call({ device_id: "pump" });
        const { id, src } = JSON.parse((await device.awaitMessage("pump/rpc")).payload) as CallFrame;
        const closed = device.closed();
        const successor = await connect("pump");
        await closed;
        await successor.publish(`${src}/rpc`, { id, result: "taken over" });
        expect(await call).toBe("taken over");
      });

      test("two hundred at once, answered in another order, each get their own answer", async () => {
        const device = await connect("pump");
        await device.subscribe("pump/rpc");
        const calls = Array.from({ length: 200 }, (_, n) =>
          shared.mesh.call({ device_id: "pump", params: { n }, timeout_ms: 60_000 }),
        );
        await eventually(() => device.messages.length === 200);
        const frames = device.messages.map(
          ({ payload }) => JSON.parse(payload) as CallFrame & { params: { n: number } },
        );
        expect(new Set(frames.map(({ id }) => id)).size).toBe(200);
        await Promise.all(
          frames
            .toReversed()
            .map(({ id, src, params }) => device.publish(`${src}/rpc`, { id, result: `answer ${params.n}` })),
        );
        expect(await Promise.all(calls)).toEqual(calls.map((_, n) => `answer ${n}`));
      });

      test("is not answered by another device, whatever topic that tries", async () => {
        const valve = await connect("valve");
        const pump = await connect("pump");
        await pump.subscribe("pump/rpc");
        const call = shared.mesh.call({ device_id: "pump" });
        const { payload } = await pump.awaitMessage("pump/rpc");
        const { id, src } = JSON.parse(payload) as CallFrame;
        for (const topic of [
          `${src}/rpc`,
          "pump/r/rpc",
          "valve/r/rpc",
          "valve/r/one/rpc",
          "*/r/rpc",
          "valve/r/*/rpc",
        ]) {
          await valve.publish(topic, { id, result: "forged" }, 1);
        }
        await pump.publish(`${src}/rpc`, { id, result: "true" });
        expect(await call).toBe("true");
      });

      test("answered late or twice disturbs no other call", async () => {
        const device = await connect("pump");
        await device.subscribe("pump/rpc");
        const late = failing(shared.mesh.call({ device_id: "pump", timeout_ms: 2_000 }));
        const first = JSON.parse((await device.awaitMessage("pump/rpc")).payload) as CallFrame;
        expect(await late).toMatchObject({ reason: "rpc_timeout" });
        await device.publish("pump/r/rpc", { id: first.id, result: "late" }, 1);
        device.forget();
        const next = shared.mesh.call({ device_id: "pump" });
        const second = JSON.parse((await device.awaitMessage("pump/rpc")).payload) as CallFrame;
        await device.publish("pump/r/rpc", { id: second.id, result: "first" });
        await device.publish("pump/r/rpc", { id: second.id, result: "second" }, 1);
        expect(await next).toBe("first");
      });

      test("reaches a device that subscribes as Mongoose OS does exactly once", async () => {
        const device = await connect("pump");
        expect(await device.subscribe("pump/rpc", 1)).toBe(1);
        expect(await device.subscribe("pump/rpc/#", 1)).toBe(128);
        device.client.on("message", (_topic, payload) => {
          const { id, src } = JSON.parse(payload.toString()) as CallFrame;
          void device.publish(`${src}/rpc`, { id, src: "pump", dst: src, result: "pong" }, 1);
        });
        expect(await shared.mesh.call({ device_id: "pump", method: "RPC.Ping" })).toBe("pong");
        expect(device.messages.filter(({ topic }) => topic === "pump/rpc")).toHaveLength(1);
      });

      test("is published as the event rpc_in, with its params, unless it is quiet", async () => {
        const events: object[] = [];
        const listening = subscribe(
          shared.mesh.tester,
          { events: rpcEvents, names: ["rpc_in"] },
          { rpc_in: (event) => void events.push(event) },
          { mode: "each" },
        );
        await shared.mesh.tester.flush();
        await answering("pump", () => ({ result: true }));
        const quiet = { device_id: "pump", method: "OTA.Write", params: { data: "AAAA" }, quiet: true };
        expect(await shared.mesh.attempt(quiet)).toEqual({ sent: true, outcome: "result", result: true });
        await shared.mesh.call({ device_id: "pump", method: "Fan.Set", params: [1] });
        await eventually(() => events.length > 0);
        expect(events).toMatchObject([{ id: "pump", func: "Fan.Set", params: [1] }]);
        await listening.stop();
      });
    });
  });
}
