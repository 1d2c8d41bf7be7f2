import { readFile } from "node:fs/promises";
import { parseArgs } from "node:util";
import { DeviceId } from "@devmesh/contracts/model/device-id";
import { enrolDevice } from "./device-enrolment.ts";
import { type DeviceKind, deviceKinds, deviceModels } from "./device-models.ts";
import { dataFolder } from "./mesh/data-folder.ts";
import { readRunningMesh } from "./mesh/mesh-file.ts";
import { meshSettings } from "./mesh/settings.ts";
import { stopRequest } from "./process/stop-request.ts";
import { startSimulatedDevice } from "./simulated-device.ts";

const usage = `Usage: npm run device -- ID [--kind ${deviceKinds.join("|")}]

Runs a simulated device against the mesh that was started with the same DATA_DIR. It makes the device when there is
none of that id, answers RPC, follows its shadow and publishes data until Ctrl-C.`;

/** What the command line asks for; a string is what is wrong with it. */
function wanted(args: string[]): { id: string; kind: DeviceKind } | "help" | { wrong: string } {
  try {
    const { values, positionals } = parseArgs({
      args,
      allowPositionals: true,
      options: { kind: { type: "string", default: "weather" }, help: { type: "boolean", short: "h" } },
    });
    if (values.help) return "help";
    const id = DeviceId.safeParse(positionals[0]);
    const kind = deviceKinds.find((known) => known === values.kind);
    if (positionals.length !== 1 || !id.success) return { wrong: "One device id is needed." };
    if (!kind) return { wrong: `There is no kind ${values.kind}.` };
    return { id: id.data, kind };
  } catch (error) {
    return { wrong: error instanceof Error ? error.message : String(error) };
  }
}

async function run(): Promise<number> {
  const arguments_ = wanted(process.argv.slice(2));
  if (arguments_ === "help") {
    process.stdout.write(`${usage}\n`);
    return 0;
  }
  if ("wrong" in arguments_) {
    process.stderr.write(`${arguments_.wrong}\n\n${usage}\n`);
    return 2;
  }
  const { id, kind } = arguments_;
  const folder = dataFolder(meshSettings(process.env).dataDir);
  const mesh = await readRunningMesh(folder);
  const masterKey = (await readFile(folder.masterKey, "utf8")).trim();
  const stop = stopRequest(() => process.exit(130));
  const token = await enrolDevice(
    { url: mesh.url, mqttUrl: mesh.mqtt_url, masterKey },
    { id, name: `Simulated ${kind}` },
  );
  const device = await startSimulatedDevice(
    { url: mesh.mqtt_url, tlsCert: mesh.mqtt_tls_cert ?? undefined, id, token },
    deviceModels[kind](),
  );
  process.stdout.write(`${id} is connected\n`);
  await stop.requested;
  await device.stop();
  return 0;
}

try {
  process.exitCode = await run();
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : error}\n`);
  process.exitCode = 1;
}
process.exit();
