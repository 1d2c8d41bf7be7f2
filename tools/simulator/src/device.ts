import { parseArgs } from "node:util";
import { DeviceId } from "@devmesh/contracts/model/device-id";
import { accessRunningMesh } from "@devmesh/supervisor/mesh/mesh-file";
import { helpOption, runCommand, WrongUsage } from "@devmesh/supervisor/process/command";
import { stopRequest } from "@devmesh/supervisor/process/stop-request";
import { enrolDevice } from "./device-enrolment.ts";
import { type DeviceKind, deviceKinds, modelOf, simulatedKinds } from "./models/device-models.ts";
import { startSimulatedDevice } from "./simulated-device.ts";

const usage = `Usage: npm run device -- ID [--kind ${deviceKinds.join("|")}]

Runs a simulated device, a pump by default, against the mesh that was started with the same DATA_DIR. It makes the device when there is
none of that id, answers RPC, follows its shadow and publishes data until Ctrl-C.`;

interface DeviceCommand {
  readonly id: DeviceId;
  readonly kind: DeviceKind;
}

function read(args: string[]): DeviceCommand | "help" {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: { kind: { type: "string", default: "pump" }, ...helpOption },
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
  const { names, units } = simulatedKinds[kind];
  const tags = { labels: [kind, "simulated"], units };
  const token = await enrolDevice(mesh, { id, name: names[0], tags });
  const device = await startSimulatedDevice(
    { url: mesh.mqttUrl, tlsCert: mesh.mqttTlsCert, id, token },
    modelOf(kind),
  );
  process.stdout.write(`${id} is connected\n`);
  await stop.requested;
  await device.stop();
}

await runCommand({ usage, read, run });
