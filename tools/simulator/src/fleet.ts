import { parseArgs } from "node:util";
import { DeviceId } from "@devmesh/contracts/model/device-id";
import { accessRunningMesh, type MeshAccess } from "@devmesh/supervisor/mesh/mesh-file";
import { helpOption, runCommand, WrongUsage } from "@devmesh/supervisor/process/command";
import { stopRequest } from "@devmesh/supervisor/process/stop-request";
import { type FleetOptions, startFleet } from "./fleet/fleet.ts";
import { fleetDeviceId, maxFleet, removeFleet } from "./fleet/fleet-devices.ts";
import { totalsLine } from "./fleet/totals.ts";

/** Interval of the printed totals, in milliseconds. */
const totalsMs = 5_000;

const usage = `Usage: npm run fleet -- [--devices N] [--prefix NAME] [--firmware] [--flaky [--seed N]]
       npm run fleet -- --remove [--prefix NAME]

Runs simulated devices against the mesh that was started with the same DATA_DIR, 20 unless told, at most ${maxFleet}. It
makes NAME-0001 and so on ("fleet-0001"), connects them one after the other, and has them answer RPC, follow their shadows
and publish data until Ctrl-C; every 5 s it says what they did, and why the mesh refused some.

All take new firmware by OTA.Update, by OTA.Begin, OTA.Write and OTA.End, and by desired.ota of their shadows. A file's first
line has its version, such as "version=1.4.0"; any other file has the first 12 digits of its SHA-256 as version. Versions
end with the program.

  --firmware  of ten devices, one takes new firmware slowly, two lose their connections half-way, one comes back with the
              old version and one with another version; half of all go on at an offset where a push was cut
  --flaky     they drop connections, answer late, wrongly or never, and send garbage, at random
  --seed      the same faults again for the same number (1 unless told)
  --remove    deletes the devices that it made`;

/** Devices to run, or to delete. */
type FleetCommand = { readonly run: FleetOptions } | { readonly remove: string };

function read(args: string[]): FleetCommand | "help" {
  const { values } = parseArgs({
    args,
    options: {
      devices: { type: "string" },
      prefix: { type: "string", default: "fleet" },
      firmware: { type: "boolean", default: false },
      flaky: { type: "boolean", default: false },
      seed: { type: "string" },
      remove: { type: "boolean", default: false },
      ...helpOption,
    },
  });
  if (values.help) return "help";
  const { prefix, firmware, flaky, remove } = values;
  if (!DeviceId.safeParse(fleetDeviceId(prefix, 1)).success)
    throw new WrongUsage(`No device id can begin with ${prefix}.`);
  if (remove) {
    if (firmware || flaky || values.devices !== undefined || values.seed !== undefined)
      throw new WrongUsage("--remove goes with --prefix alone.");
    return { remove: prefix };
  }
  const devices = wholeNumber(values.devices ?? "20", maxFleet);
  if (devices === null || devices === 0)
    throw new WrongUsage(`--devices takes a number from 1 to ${maxFleet}.`);
  if (values.seed !== undefined && !flaky) throw new WrongUsage("--seed needs --flaky.");
  const seed = wholeNumber(values.seed ?? "1", 2 ** 32 - 1);
  if (seed === null) throw new WrongUsage("--seed takes a number from 0 to 4294967295.");
  return { run: { prefix, devices, mixedUpdates: firmware, faultSeed: flaky ? seed : null } };
}

function wholeNumber(text: string, max: number): number | null {
  return /^\d{1,10}$/.test(text) && Number(text) <= max ? Number(text) : null;
}

/** Runs a fleet until it is stopped; throws when a device cannot join. */
async function runFleet(mesh: MeshAccess, options: FleetOptions): Promise<void> {
  const stop = stopRequest();
  const fleet = startFleet(mesh, options);
  const report = () => {
    const line = totalsLine(fleet.totals, {
      connected: fleet.connected(),
      wanted: options.devices,
      faults: options.faultSeed !== null,
      refusals: fleet.refusals,
    });
    process.stdout.write(`${line}\n`);
  };
  const reporting = setInterval(report, totalsMs);
  try {
    const joined = fleet.joined.then(() => {
      if (!stop.signal.aborted) report();
      return stop.requested;
    });
    await Promise.race([joined, stop.requested]);
  } finally {
    clearInterval(reporting);
    await fleet.stop();
  }
}

async function run(wanted: FleetCommand): Promise<void> {
  const mesh = await accessRunningMesh(process.env);
  if ("run" in wanted) await runFleet(mesh, wanted.run);
  else process.stdout.write(`${await removeFleet(mesh, wanted.remove)} devices are deleted\n`);
}

await runCommand({ usage, read, run });
