import { parseArgs } from "node:util";
import { DeviceId } from "@devmesh/contracts/model/device-id";
import { accessRunningMesh } from "@devmesh/launcher/mesh/mesh-file";
import { helpOption, runCommand, WrongUsage } from "@devmesh/launcher/process/command";
import { stopRequest } from "@devmesh/launcher/process/stop-request";
import { enrolDevice } from "./device-enrolment.ts";
import { type DeviceKind, deviceKinds, deviceModels } from "./device-models.ts";
import { startSimulatedDevice } from "./simulated-device.ts";

const usage = `Usage: npm run device -- ID [--kind ${deviceKinds.join("|")}]

Runs a simulated device against the mesh that was started with the same DATA_DIR. It makes the device when there is
none of that id, answers RPC, follows its shadow and publishes data until Ctrl-C.`;

interface DeviceCommand {
  readonly id: DeviceId;
  readonly kind: DeviceKind;
}

function read(args: string[]): DeviceCommand | "help" {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: { kind: { type: "string", default: "weather" }, ...helpOption },
  });
  if (values.help) return "help";
  const id = DeviceId.safeParse(positionals[0]);
  const kind = deviceKinds.find((known) => known === values.kind);
  if (positionals.length !== 1 || !id.success) throw new WrongUsage("One device id is needed.");
  if (!kind) throw new WrongUsage(`There is no kind ${values.kind}.`);
  return { id: id.data, kind };
}

async function run({ id, kind }: DeviceCommand): Promise<void> {
  const mesh = await accessRunningMesh(process.env);
  const stop = stopRequest();
  const token = await enrolDevice(mesh, { id, name: `Simulated ${kind}`, labels: ["simulated", kind] });
  const device = await startSimulatedDevice(
    { url: mesh.mqttUrl, tlsCert: mesh.mqttTlsCert, id, token },
    deviceModels[kind](),
  );
  process.stdout.write(`${id} is connected\n`);
  await stop.requested;
  await device.stop();
}

await runCommand({ usage, read, run });
