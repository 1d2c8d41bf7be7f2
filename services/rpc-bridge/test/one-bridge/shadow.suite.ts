import { rpcEvents } from "@devmesh/contracts/rpc-bridge";
import { subscribe } from "@devmesh/service-kit/events/subscription";
import { eventually } from "@devmesh/testkit/eventually";
import type { MqttDevice } from "@devmesh/testkit/mqtt-device";
import { afterEach, describe, expect, test } from "@jest/globals";
import { type SharedBridge, startBridge } from "../bridge-fixture.ts";

/** Suite over a bridge with its default settings: shadows and events over MQTT. */
export function shadowMessages(shared: SharedBridge): void {
  describe("shadows and events over MQTT", () => {
    const connected: MqttDevice[] = [];

    afterEach(async () => {
      await Promise.all(connected.splice(0).map((device) => device.leave()));
      shared.mesh.registry.known.clear();
      shared.mesh.registry.patches.length = 0;
      shared.mesh.registry.beforePatch = () => undefined;
      shared.mesh.registry.afterPatch = () => undefined;
    });

    async function connect(id: string): Promise<MqttDevice> {
      const device = await shared.mesh.connect(id);
      connected.push(device);
      for (const topic of ["shadow/update/accepted", "shadow/update/rejected", "shadow"]) {
        await device.subscribe(`${id}/${topic}`, 1);
      }
      return device;
    }

    interface Answer {
      readonly kind: "accepted" | "rejected";
      readonly version?: number;
      readonly clientToken?: string;
    }

    /** The answers to updates that a device has had so far. */
    function answersOf({ messages }: MqttDevice): Answer[] {
      return messages
        .filter(({ topic }) => topic.includes("/shadow/update/"))
        .map(({ topic, payload }) => ({ kind: topic.split("/").at(-1), ...JSON.parse(payload) }) as Answer);
    }

    /** Waits for as many answers: a later test of the same device id would receive those left. */
    async function awaitAnswers(device: MqttDevice, count: number): Promise<Answer[]> {
      return await eventually(() => {
        const answers = answersOf(device);
        return answers.length >= count && answers;
      });
    }

    async function answerTo(device: MqttDevice, payload: unknown, qos: 0 | 1 | 2 = 1): Promise<Answer> {
      device.forget();
      await device.publish(`${device.id}/shadow/update`, payload, qos);
      const [answer] = await awaitAnswers(device, 1);
      if (answer === undefined) throw new Error("there is one");
      return answer;
    }

    const reported = (n: number) => ({ state: { reported: { n } } });

    describe("a shadow update of a device", () => {
      test.each([0, 1, 2] as const)("at QoS %i is applied once and accepted", async (qos) => {
        shared.mesh.registry.add("pump", { version: 6 });
        const device = await connect("pump");
        const answer = await answerTo(device, { state: { reported: { speed: 3 } }, clientToken: "t-1" }, qos);
        const { timestamp } = shared.mesh.registry.known.get("pump") ?? {};
        expect(answer).toEqual({
          kind: "accepted",
          state: { reported: { speed: 3 } },
          version: 7,
          timestamp,
          clientToken: "t-1",
        });
        // Another one follows: a duplicate would have come before it.
        await answerTo(device, reported(1), qos);
        expect(shared.mesh.registry.patches).toHaveLength(2);
      });

      test("without a clientToken is accepted without one", async () => {
        expect(await answerTo(await connect("pump"), reported(1))).not.toHaveProperty("clientToken");
      });

      test.each(["", "é".repeat(32), 'a "quoted" \u0000 one'])(
        "has its clientToken %j echoed",
        async (clientToken) => {
          expect(await answerTo(await connect("pump"), { ...reported(1), clientToken })).toMatchObject({
            clientToken,
          });
        },
      );

      test.each<[string, unknown, object]>([
        ["is not JSON", "{speed: 3}", { code: 400 }],
        ["is not UTF-8", Buffer.from([0x7b, 0xff, 0x7d]), { code: 400 }],
        ["is empty", "", { code: 400 }],
        ["is no object", "[1]", { code: 400 }],
        ["has no state", { clientToken: "t" }, { code: 400, clientToken: "t" }],
        [
          "has a clientToken that is too long",
          { ...reported(1), clientToken: "x".repeat(65) },
          { code: 400 },
        ],
        ["has a clientToken that is no string", { ...reported(1), clientToken: 5 }, { code: 400 }],
        [
          "writes another section",
          { state: { delta: {} }, clientToken: "t" },
          { code: 400, clientToken: "t" },
        ],
        [
          "holds a number beyond the range of a double",
          '{"state":{"reported":{"speed":[1e400]}},"clientToken":"t"}',
          {
            code: 400,
            message: "/state/reported/speed/0 is a number beyond the range of a double",
            clientToken: "t",
          },
        ],
        [
          "holds a number with more digits than a double",
          '{"state":{"reported":{"iccid":89490200001234567891}},"clientToken":"t"}',
          {
            code: 400,
            message: expect.stringMatching(/^\/state\/reported\/iccid is a number with more digits/),
            clientToken: "t",
          },
        ],
        [
          "writes tags",
          { ...reported(1), tags: {}, clientToken: "t" },
          { code: 403, message: "/shadow/tags may not be written; nothing was applied", clientToken: "t" },
        ],
        [
          "names another version",
          { ...reported(1), version: 99, clientToken: "t" },
          { code: 409, clientToken: "t" },
        ],
        [
          "is too large for the shadow",
          { state: { reported: { x: "y".repeat(40_000) } }, clientToken: "t" },
          { code: 413, clientToken: "t" },
        ],
        ["is too large for anything", { state: { reported: { x: "y".repeat(300_000) } } }, { code: 413 }],
        [
          "is nested too deep to be written again",
          `{"state":${"[".repeat(60_000)}${"]".repeat(60_000)}}`,
          { code: 400 },
        ],
      ])("that %s is rejected", async (_what, payload, rejection) => {
        const answer = await answerTo(await connect("pump"), payload);
        expect(answer).toEqual({ kind: "rejected", message: expect.stringMatching(/./), ...rejection });
        expect(shared.mesh.registry.patches).toEqual([]);
        const { message } = answer as { readonly message?: string };
        // Many devices do not subscribe to `rejected`: the diagnostics have the same words.
        await eventually(() =>
          shared.mesh.diagnosed.some(({ id, detail }) => id === "pump" && detail === message),
        );
      });

      test("of a deleted device is dropped without an answer, which a later device of that id could receive", async () => {
        const device = await connect("pump");
        const known = shared.mesh.registry.known.get("pump");
        shared.mesh.registry.known.delete("pump");
        shared.mesh.registry.beforePatch = () => {
          // The next update of the device finds it again.
          shared.mesh.registry.beforePatch = () =>
            void (known && shared.mesh.registry.known.set("pump", known));
        };
        await device.publish("pump/shadow/update", { ...reported(1), clientToken: "gone" }, 1);
        expect(await answerTo(device, { ...reported(2), clientToken: "back" })).toMatchObject({
          kind: "accepted",
          clientToken: "back",
        });
        expect(device.messages.some(({ payload }) => payload.includes("gone"))).toBe(false);
      });

      test("carries to the registry when the broker took it", async () => {
        const before = Date.now();
        await answerTo(await connect("pump"), reported(1));
        const [takenAt] = shared.mesh.registry.takenAt.slice(-1);
        expect(Date.parse(takenAt ?? "")).toBeGreaterThanOrEqual(before - 1);
        expect(Date.parse(takenAt ?? "")).toBeLessThanOrEqual(Date.now());
      });

      test("may name the version it is based on", async () => {
        shared.mesh.registry.add("pump", { version: 4 });
        expect(await answerTo(await connect("pump"), { ...reported(1), version: 4 })).toMatchObject({
          version: 5,
        });
      });

      test("changes the delta, which the device receives", async () => {
        shared.mesh.registry.add("pump", { desired: { speed: 3 } });
        const device = await connect("pump");
        await device.subscribe("pump/shadow/delta", 1);
        await device.publish("pump/shadow/update", { state: { reported: { speed: 3 } } }, 1);
        await device.awaitMessage(
          ({ topic, payload }) =>
            topic === "pump/shadow/delta" &&
            payload.startsWith('{"state":{},') &&
            payload.includes('"version":2'),
        );
        await awaitAnswers(device, 1);
      });

      test("keeps its place among many, for each device", async () => {
        const devices = [await connect("pump"), await connect("valve")];
        for (let n = 0; n < 50; n++)
          for (const device of devices) await device.publish(`${device.id}/shadow/update`, reported(n), 1);
        for (const device of devices) {
          expect((await awaitAnswers(device, 50)).map(({ version }) => version)).toEqual(
            Array.from({ length: 50 }, (_, n) => n + 2),
          );
          expect(shared.mesh.registry.known.get(device.id)).toMatchObject({
            reported: { n: 49 },
            version: 51,
          });
        }
      });

      test("waits in its order while the registry is away", async () => {
        const device = await connect("pump");
        await shared.mesh.registry.stopServing();
        for (const n of [1, 2, 3])
          await device.publish("pump/shadow/update", { ...reported(n), clientToken: `${n}` }, 1);
        shared.mesh.registry.serveAgain();
        const answers = await awaitAnswers(device, 3);
        expect(answers.map(({ clientToken }) => clientToken)).toEqual(["1", "2", "3"]);
        expect(shared.mesh.registry.known.get("pump")).toMatchObject({ reported: { n: 3 }, version: 4 });
      });

      test("that always fails is given up, and what comes after it is applied", async () => {
        const device = await connect("pump");
        shared.mesh.registry.beforePatch = (id) => {
          if (id === "pump") throw new Error("a defect");
        };
        await device.publish("pump/shadow/update", { ...reported(1), clientToken: "bad" }, 1);
        expect(await answerTo(await connect("valve"), reported(1))).toMatchObject({ kind: "accepted" });
        expect(await awaitAnswers(device, 1)).toMatchObject([
          { kind: "rejected", code: 500, clientToken: "bad" },
        ]);
        shared.mesh.registry.beforePatch = () => undefined;
        expect(await answerTo(device, reported(2))).toMatchObject({ kind: "accepted", version: 2 });
      });

      test("that was acknowledged survives a bridge that is killed before it was applied", async () => {
        const device = await connect("pump");
        await shared.mesh.registry.stopServing();
        await device.publish("pump/shadow/update", reported(8), 1);
        await shared.bridge.end("SIGKILL");
        await device.publish("pump/shadow/update", reported(9), 1);
        shared.mesh.registry.serveAgain();
        shared.bridge = await startBridge(shared.mesh);
        expect(await awaitAnswers(device, 2)).toMatchObject([
          { kind: "accepted", version: 2 },
          { kind: "accepted", version: 3 },
        ]);
        expect(shared.mesh.registry.patches).toEqual([{ shadow: reported(8) }, { shadow: reported(9) }]);
      });

      test("that was applied by a bridge that died before it could say so is accepted in the end, its version being known", async () => {
        shared.mesh.registry.add("pump", { version: 1 });
        const device = await connect("pump");
        shared.mesh.registry.beforePatch = async () => {
          shared.mesh.registry.beforePatch = () => undefined;
          await shared.bridge.end("SIGKILL");
        };
        await device.publish("pump/shadow/update", { ...reported(5), version: 1, clientToken: "once" }, 1);
        await eventually(() => shared.mesh.registry.patches.length === 1);
        shared.bridge = await startBridge(shared.mesh);
        expect(await awaitAnswers(device, 1)).toMatchObject([
          { kind: "accepted", version: 2, clientToken: "once" },
        ]);
        expect(shared.mesh.registry.patches).toHaveLength(1);
      });

      test("that was applied though the registry's answer was lost is accepted, its version being known", async () => {
        shared.mesh.registry.add("pump", { version: 1 });
        const device = await connect("pump");
        shared.mesh.registry.afterPatch = () => {
          shared.mesh.registry.afterPatch = () => undefined;
          throw new Error("a defect after the write");
        };
        expect(await answerTo(device, { ...reported(5), version: 1, clientToken: "once" })).toMatchObject({
          kind: "accepted",
          version: 2,
          clientToken: "once",
        });
        expect(shared.mesh.registry.patches).toHaveLength(1);
      });
    });

    describe("a device that asks for its shadow", () => {
      test.each([0, 1] as const)(
        "at QoS %i gets state with delta, version and timestamp, and no tags",
        async (qos) => {
          shared.mesh.registry.add("pump", {
            desired: { speed: 3 },
            reported: { heat: 1 },
            tags: { labels: ["x"] },
            version: 9,
            timestamp: 5,
          });
          const device = await connect("pump");
          await device.publish("pump/shadow/get", "", qos);
          const { payload } = await device.awaitMessage("pump/shadow");
          expect(JSON.parse(payload)).toEqual({
            state: { desired: { speed: 3 }, reported: { heat: 1 }, delta: { speed: 3 } },
            version: 9,
            timestamp: 5,
          });
        },
      );

      test("has its clientToken echoed, and is answered also when the payload is nonsense", async () => {
        const device = await connect("pump");
        await device.publish("pump/shadow/get", { clientToken: "c" }, 1);
        expect(JSON.parse((await device.awaitMessage("pump/shadow")).payload)).toMatchObject({
          clientToken: "c",
        });
        device.forget();
        await device.publish("pump/shadow/get", "what?", 1);
        expect(JSON.parse((await device.awaitMessage("pump/shadow")).payload)).toMatchObject({ version: 1 });
      });
    });

    describe("an event of a device", () => {
      test("appears as rpc_out with what follows ID/event/, at each QoS once", async () => {
        const events: { name: string }[] = [];
        const listening = subscribe(
          shared.mesh.tester,
          { events: rpcEvents, names: ["rpc_out"] },
          { rpc_out: (event) => void events.push(event) },
          { mode: "each" },
        );
        await shared.mesh.tester.flush();
        const device = await connect("pump");
        await device.publish("pump/event/not-json", "{", 1);
        await device.publish("pump/event/*", "1", 1);
        await device.publish("pump/*/door", "1", 1);
        await device.publish("pump/event", "1", 1);
        await device.publish("pump/event/door/open", { by: "ann" }, 1);
        await device.publish("pump/event/v1.2", "null", 2);
        await device.publish("pump/event/level", "0", 0);
        await eventually(() => events.length === 3);
        expect(events.toSorted((a, b) => a.name.localeCompare(b.name))).toMatchObject([
          { id: "pump", name: "door/open", payload: { by: "ann" } },
          { id: "pump", name: "level", payload: 0 },
          { id: "pump", name: "v1.2", payload: null },
        ]);
        await listening.stop();
      });
    });
  });
}
