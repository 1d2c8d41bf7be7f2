import { type DeviceKind, modelOf } from "@devmesh/simulator/device-models";
import { type SimulatedDevice, startSimulatedDevice } from "@devmesh/simulator/simulated-device";
import { eventually } from "@devmesh/testkit/eventually";
import type { TestMesh } from "@devmesh/testkit/mesh";
import { asMaster } from "./tenant.ts";

/** The devices of two sites; those with `firmware` are connected. */
const members: readonly {
  readonly id: string;
  readonly name: string;
  readonly labels: readonly [site: "hamburg" | "lyon", kind: DeviceKind, ...string[]];
  readonly firmware?: string;
}[] = [
  { id: "roof-east", name: "Weather, roof east", labels: ["hamburg", "weather"], firmware: "1.4.2" },
  { id: "roof-west", name: "Weather, roof west", labels: ["hamburg", "weather"], firmware: "1.4.2" },
  { id: "cellar-pump", name: "Pump, cellar", labels: ["hamburg", "pump"], firmware: "2.0.1" },
  { id: "well-pump", name: "Pump, well", labels: ["lyon", "pump"], firmware: "1.9.8" },
  { id: "cistern-pump", name: "Pump, cistern", labels: ["lyon", "pump", "spare"] },
  { id: "hall-lamp", name: "Lamp, entrance hall", labels: ["lyon", "lamp"], firmware: "3.1.0" },
  { id: "yard-lamp", name: "Lamp, yard", labels: ["lyon", "lamp"], firmware: "3.0.7" },
  { id: "greenhouse-1", name: "Greenhouse 1", labels: ["lyon", "weather"], firmware: "1.4.2" },
  { id: "greenhouse-2", name: "Greenhouse 2", labels: ["lyon", "weather"] },
  { id: "gate-lamp", name: "Lamp, gate", labels: ["hamburg", "lamp"] },
];

/** A small fleet, most of it connected. */
export interface SmallFleet extends AsyncDisposable {
  /** Publishes as a device on `db/ID/<topic>`; throws for one that is not connected. */
  publish(id: string, topic: string, value: unknown): void;
}

/** Creates and connects the fleet, with keys, a customer and a pending change. */
export async function startSmallFleet(mesh: TestMesh): Promise<SmallFleet> {
  const master = asMaster(mesh);
  const connected = new Map<string, SimulatedDevice>();
  for (const { id, name, labels, firmware } of members) {
    const created = await master.post("devices", { id, name, shadow: { tags: { labels } } });
    if (created.status !== 201) throw new Error(`creating ${id}: ${created.status} ${created.text}`);
    if (firmware === undefined) continue;
    const device = await startSimulatedDevice(
      { url: mesh.mqttUrl, id, token: created.json.token },
      modelOf(labels[1], firmware),
    );
    connected.set(id, device);
  }
  await master.post("devices/cistern-pump", {
    shadow: {
      state: { desired: { app: { mode: "manual", litres: 40 } }, reported: { app: { mode: "auto" } } },
    },
  });
  await master.post("keys", { name: "Night shift" });
  await master.post("keys", { name: "Tenant, ground floor", device_id: "hall-lamp" });
  await master.get("/newcustomer?email=ann.moreau@example.com");
  await eventually(async () => (await master.get("devices?online=true")).json.length === connected.size);
  return {
    publish(id, topic, value) {
      const device = connected.get(id);
      if (device === undefined) throw new Error(`${id} is not connected`);
      device.send(`db/${id}/${topic}`, Buffer.from(JSON.stringify(value)));
    },
    async [Symbol.asyncDispose]() {
      await Promise.all([...connected.values()].map((device) => device.stop()));
    },
  };
}
