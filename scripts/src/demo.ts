import { enrolDevice } from "./device-enrolment.ts";
import { deviceKinds, deviceModels } from "./device-models.ts";
import type { MeshAccess } from "./mesh/mesh-access.ts";
import { type SimulatedDevice, startSimulatedDevice } from "./simulated-device.ts";

/** Devices that run until they are stopped. */
export interface Demo {
  readonly devices: readonly SimulatedDevice[];
  stop(): Promise<void>;
}

/** Three devices, one of each kind; creates those that are not there yet, over the REST API, and connects them. Throws when the mesh refuses one. */
export async function startDemo(mesh: MeshAccess): Promise<Demo> {
  const devices: SimulatedDevice[] = [];
  const stop = async () => {
    await Promise.all(devices.map((device) => device.stop()));
  };
  try {
    for (const kind of deviceKinds) {
      const id = `demo-${kind}`;
      const token = await enrolDevice(mesh, { id, name: `Demonstration: ${kind}` });
      devices.push(
        await startSimulatedDevice(
          { url: mesh.mqttUrl, tlsCert: mesh.mqttTlsCert, id, token },
          deviceModels[kind](),
        ),
      );
    }
  } catch (error) {
    await stop();
    throw error;
  }
  return { devices, stop };
}
