import { accessRunningMesh, type MeshAccess } from "@devmesh/supervisor/mesh/mesh-file";
import { stopRequest } from "@devmesh/supervisor/process/stop-request";
import { createDemoRule } from "./demo-rule.ts";
import { enrolDevice } from "./device-enrolment.ts";
import { type DeviceKind, modelOf, simulatedKinds } from "./models/device-models.ts";
import { type SimulatedDevice, startSimulatedDevice } from "./simulated-device.ts";

/**
 * The program of `npm start -- --demo`: three devices, and a rule about one of them, until SIGTERM or the end of the
 * channel. It sends `{ devices: ids }`, or `{ error: message }` and exits with 1.
 */

const kinds = ["lamp", "pump", "weather"] as const satisfies readonly DeviceKind[];

const stop = stopRequest();
const devices: SimulatedDevice[] = [];
try {
  // A key for another mesh must not keep this one from its demonstration.
  const { DEVMESH_KEY: _, ...env } = process.env;
  const mesh = await accessRunningMesh(env);
  for (const kind of kinds) devices.push(await startDevice(mesh, kind));
  // A mesh that runs without the service of alerts has its devices all the same.
  await createDemoRule(mesh).catch((error: unknown) =>
    process.stderr.write(`No rule was created: ${error}\n`),
  );
  process.send?.({ devices: devices.map(({ id }) => id) });
  await stop.requested;
  await Promise.all(devices.map((device) => device.stop()));
  process.exit(0);
} catch (error) {
  process.send?.({ error: error instanceof Error ? error.message : String(error) }, () => process.exit(1));
}

async function startDevice(mesh: MeshAccess, kind: DeviceKind): Promise<SimulatedDevice> {
  const id = `demo-${kind}`;
  const { units } = simulatedKinds[kind];
  const tags = { labels: ["demo", kind], units };
  const token = await enrolDevice(mesh, { id, name: `Demonstration: ${kind}`, tags });
  const login = { url: mesh.mqttUrl, tlsCert: mesh.mqttTlsCert, id, token };
  return await startSimulatedDevice(login, modelOf(kind));
}
