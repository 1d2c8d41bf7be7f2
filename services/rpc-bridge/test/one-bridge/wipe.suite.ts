import { maxKnownClientIds } from "@devmesh/contracts/keys";
import { createCallContext } from "@devmesh/service-kit/rpc/context";
import { eventually } from "@devmesh/testkit/eventually";
import { testLog } from "@devmesh/testkit/sample-mesh/buses";
import { describe, expect, test } from "@jest/globals";
import { UniqueMessageIdProvider } from "mqtt";
import { createWipeDevice } from "../../src/broker-housekeeping/wipe-device.ts";
import type { SharedBridge } from "../bridge-fixture.ts";

/** Suite over a bridge with its default settings: what a device leaves in the broker. */
export function wipes(shared: SharedBridge): void {
  describe("what a device leaves in the broker", () => {
    async function wipe(device_id: string, client_ids: string[]): Promise<void> {
      using call = createCallContext({ timeoutMs: 25_000 });
      await shared.mesh.bridge.wipeDevice({ device_id, client_ids }, call);
    }

    const kept = { clean: false } as const;

    describe("ending sessions", () => {
      const endSessions = async (client_ids: string[]) => {
        using call = createCallContext({ timeoutMs: 5_000 });
        await shared.mesh.bridge.endSessions({ device_id: "lamp", client_ids }, call);
      };

      test("closes connections, publishes none of their wills, and drops what they kept", async () => {
        await using witness = await shared.mesh.connect("lamp", { clientId: "lamp:witness" });
        await using valve = await shared.mesh.connect("valve");
        for (const topic of ["lamp/event/will", "lamp/shadow/update/accepted"])
          await witness.subscribe(topic);
        const patches = shared.mesh.registry.patches.length;
        // The last is of the form that the broker makes up for a client that sends none.
        const clientIds = ["lamp", "lamp:kept", "lamp:update", "ABCDEFGHIJKLMNOPQRSTUW"];
        const sessions = await Promise.all(
          clientIds.map((clientId, index) =>
            shared.mesh.connect("lamp", {
              clientId,
              clean: clientId !== "lamp:kept",
              will:
                clientId === "lamp:update"
                  ? {
                      topic: "lamp/shadow/update",
                      payload: Buffer.from('{"state":{"desired":{"on":1}}}'),
                      qos: 1,
                    }
                  : {
                      topic: "lamp/event/will",
                      payload: Buffer.from("{}"),
                      qos: index % 2 ? 1 : 0,
                      retain: index > 2,
                    },
            }),
          ),
        );
        await sessions[1]?.subscribe("lamp/note", 1);
        await Promise.all([...sessions.map((session) => session.closed()), endSessions(clientIds)]);

        expect([witness.client.connected, valve.client.connected]).toEqual([true, true]);
        await witness.publish("lamp/note", "nobody is there", 1);
        await witness.publish("lamp/shadow/update", { state: { reported: { on: 0 } } }, 1);
        await witness.awaitMessage("lamp/shadow/update/accepted");
        expect(shared.mesh.registry.patches.slice(patches)).toEqual([
          { shadow: { state: { reported: { on: 0 } } } },
        ]);
        expect(witness.messages.filter(({ topic }) => topic === "lamp/event/will")).toEqual([]);
        await using later = await shared.mesh.connect("lamp", { ...kept, clientId: "lamp:kept" });
        await later.subscribe("lamp/event/will", 1);
        await later.publish("lamp/event/will", "a sign", 1);
        await later.awaitMessage(({ payload }) => payload === "a sign");
        expect(later.messages).toHaveLength(1);
      });

      test("of another device's client ids is refused as a whole", async () => {
        await using lamp = await shared.mesh.connect("lamp");
        await using valve = await shared.mesh.connect("valve");
        await expect(endSessions(["lamp", "valve"])).rejects.toMatchObject({ reason: "internal" });
        expect([lamp.client.connected, valve.client.connected]).toEqual([true, true]);
      });
    });

    describe("wiping a device", () => {
      test("drops its sessions with what is queued in them, and its retained messages, and touches nobody else", async () => {
        // The last is of the form that the broker makes up for a client that sends none.
        const clientIds = ["pump", "pump:second", "ABCDEFGHIJKLMNOPQRSTUV"];
        for (const clientId of clientIds) {
          const device = await shared.mesh.connect("pump", { ...kept, clientId });
          expect(await device.subscribe("pump/note", 1)).toBe(1);
          await device.leave();
        }
        const writer = await shared.mesh.connect("pump", { clientId: "pump:writer" });
        await writer.publish("pump/note", "for the one who is away", 1);
        const retained = [
          "pump/status",
          "pump/a.b/c",
          "pump/*/c",
          "pump//",
          "db/pump/last",
          "db/pump/deep/er",
          "pump/shadow/delta",
        ];
        for (const topic of retained) await writer.publish(topic, "left over", 1, true);
        const neighbour = await shared.mesh.connect("pump2");
        await neighbour.publish("pump2/status", "stays", 1, true);
        const valve = await shared.mesh.connect("valve");
        await writer.leave();
        shared.mesh.registry.known.delete("pump");

        await wipe("pump", [...clientIds, "valve", "pump2", "_rpc-bridge-one", "pump:no.dots"]);

        expect(valve.client.connected).toBe(true);
        expect(neighbour.client.connected).toBe(true);
        // The bridge publishes a delta of each device that is online some seconds after it started.
        shared.mesh.registry.add("pump", { online: false });
        for (const clientId of clientIds) {
          const later = await shared.mesh.connect("pump", { ...kept, clientId });
          await later.subscribe("pump/note", 1);
          for (const filter of ["pump/+", "pump/+/+", "pump/+/+/+", "db/pump/#", "db/pump/+/+"])
            await later.subscribe(filter, 1);
          await later.publish("pump/note", "a sign", 1);
          await later.awaitMessage(({ payload }) => payload === "a sign");
          expect(later.messages.filter(({ payload }) => payload !== "a sign")).toEqual([]);
          await later.leave();
        }
        await neighbour.subscribe("pump2/status");
        expect((await neighbour.awaitMessage("pump2/status")).payload).toBe("stays");
        await valve.leave();
        await neighbour.leave();
      });

      test("drops what it published at QoS 2 and never released, which a later device would publish in place of its own", async () => {
        const numbered = () => ({ messageIdProvider: new UniqueMessageIdProvider() });
        for (const clientId of ["pump", "pump:second"]) {
          const cut = await shared.mesh.connect("pump", { ...numbered(), clientId });
          cut.client.on("packetreceive", ({ cmd }) => {
            if (cmd === "pubrec") cut.vanish();
          });
          void cut.publish("pump/note", "old", 2).catch(() => undefined);
          await cut.closed();
        }
        const neighbour = await shared.mesh.connect("pump2", numbered());
        neighbour.client.on("packetreceive", ({ cmd }) => {
          if (cmd === "pubrec") neighbour.vanish();
        });
        void neighbour.publish("pump2/note", "kept", 2).catch(() => undefined);
        await neighbour.closed();

        await wipe("pump", []);

        for (const [id, clientId, words] of [
          ["pump", "pump", "new"],
          ["pump", "pump:second", "new"],
          // The broker takes it for a repetition.
          ["pump2", "pump2", "kept"],
        ] as const) {
          await using later = await shared.mesh.connect(id, { ...numbered(), clientId });
          await using listener = await shared.mesh.connect(id, { clientId: `${id}:listener` });
          await listener.subscribe(`${id}/note`, 1);
          await later.publish(`${id}/note`, "new", 2);
          expect((await listener.awaitMessage(`${id}/note`)).payload).toBe(words);
        }
      });

      test("ends the sessions that it kept under more client ids than are known of a device, and nobody else's", async () => {
        const forgotten = ["pump:forgotten", "FORGOTTENforgotten1234"];
        for (const [id, clientId] of [...forgotten.map((one) => ["pump", one]), ["pump2", "pump2"]]) {
          const device = await shared.mesh.connect(id ?? "", { ...kept, ...(clientId && { clientId }) });
          expect(await device.subscribe(`${id}/note`, 1)).toBe(1);
          await device.leave();
        }
        const known = Array.from({ length: maxKnownClientIds }, (_, n) => `pump:${n}`);
        // `devices` repeats a step that a busy machine does not end in time.
        await eventually(() => wipe("pump", known).then(() => true));

        await using pump = await shared.mesh.connect("pump", { clientId: "pump:writer" });
        await using pump2 = await shared.mesh.connect("pump2", { clientId: "pump2:writer" });
        await pump.publish("pump/note", "missed", 1);
        await pump2.publish("pump2/note", "kept", 1);
        for (const clientId of forgotten) {
          await using later = await shared.mesh.connect("pump", { ...kept, clientId });
          await later.subscribe("pump/note", 1);
          await pump.publish("pump/note", "a sign", 1);
          expect((await later.awaitMessage("pump/note")).payload).toBe("a sign");
        }
        await using other = await shared.mesh.connect("pump2", kept);
        expect((await other.awaitMessage("pump2/note")).payload).toBe("kept");
      });

      test("may be done twice, and to a device that left nothing", async () => {
        await wipe("pump", []);
        await wipe("pump", ["pump"]);
      });

      test("clears hundreds of retained messages", async () => {
        const writer = await shared.mesh.connect("pump2");
        await Promise.all(
          Array.from({ length: 300 }, (_, n) => writer.publish(`db/pump2/${n}`, "x", 1, true)),
        );
        await wipe("pump2", []);
        await eventually(() => !writer.client.connected);
        const later = await shared.mesh.connect("pump2");
        await later.subscribe("db/pump2/+");
        await later.publish("db/pump2/sign", "a sign", 1);
        await later.awaitMessage("db/pump2/sign");
        expect(later.messages).toHaveLength(1);
        await later.leave();
      });

      test("is unavailable, so that it is repeated, while a server of the broker clears nothing", async () => {
        const wipeDevice = createWipeDevice({
          storage: {
            persistentSessions: async () => [],
            retainedTopics: async () => ({ topics: ["pump/shadow/delta"], total: 1 }),
            dropUnreleased: async () => undefined,
          },
          endSessions: async () => undefined,
          link: { publish: async () => undefined },
          forget: () => undefined,
        });
        using call = createCallContext({ timeoutMs: 25_000 });
        await expect(wipeDevice("pump", [], { signal: call.signal, log: testLog })).rejects.toMatchObject({
          reason: "unavailable",
        });
      });

      test("leaves no delta of the device when one was on its way", async () => {
        shared.mesh.registry.add("valve", { desired: { on: true } });
        await shared.mesh.registry.publishUpdated("valve");
        shared.mesh.registry.known.delete("valve");
        await wipe("valve", []);
        shared.mesh.registry.add("valve", { online: false });
        const later = await shared.mesh.connect("valve");
        shared.mesh.registry.known.delete("valve");
        await later.subscribe("valve/shadow/delta");
        await later.publish("valve/sign", "x", 1);
        expect(later.messages).toEqual([]);
        await later.leave();
      });
    });

    test("a bridge that is ready has no backlog", async () => {
      using call = createCallContext({ timeoutMs: 5_000 });
      expect(await shared.mesh.bridge.readBacklog({}, call)).toEqual({ waiting: 0 });
    });
  });
}
