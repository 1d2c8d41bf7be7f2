/**
 * Reads of one device while 150 clients ask for the list of all devices, and hang up at once or read it,
 * against reads alone. `node bench/abandoned-lists.ts [devices]`
 */
import { once } from "node:events";
import { connect } from "node:net";
import { startMesh } from "@devmesh/testkit/mesh";
import { tempFolder } from "@devmesh/testkit/temp-folder";
import { seedDevices } from "./dashboard/seeded-devices.ts";
import { inTurns, median, p99, report } from "./measure.ts";
import { startMeshBefore } from "./mesh-before.ts";
import { withoutRateLimits } from "./mesh-tenant.ts";
import { steadily } from "./steady-load.ts";

const count = Number(process.argv[2] ?? 3_000);
const rounds = 5;
const clients = 150;
const roundMs = 4_000;
/** How long a client stays whose request must arrive, in milliseconds. */
const hangUpMs = 20;

/** A mesh with devices, and its reads beside clients. */
async function startListedMesh(start: typeof startMesh) {
  const folder = await tempFolder();
  await seedDevices(folder.path, count);
  const mesh = await start({ dataDir: folder.path, env: withoutRateLimits });
  const { hostname, port } = new URL(mesh.url);
  const list = `GET /api/v2/devices HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer ${mesh.masterKey}\r\n\r\n`;

  /** Asks for the list on a connection that nothing else uses, and stays until `signal` aborts. */
  async function askForList(signal: AbortSignal): Promise<void> {
    const socket = connect({ host: hostname, port: Number(port) });
    await once(socket, "connect");
    socket.write(list);
    socket.resume();
    if (!signal.aborted) await once(signal, "abort");
    socket.destroy();
  }

  return {
    /** Reads one device while as many clients as given stay for a time. */
    async readBeside(lists: number, staysMs: number) {
      const end = performance.now() + roundMs;
      const staying = AbortSignal.timeout(staysMs);
      const asked = Promise.all(Array.from({ length: lists }, () => askForList(staying)));
      const load = { perSecond: 50, inFlight: 100, goesOn: (now: number) => now < end };
      const { ms, lost, reasons } = await steadily(load, async () => {
        const { status } = await mesh.http("/api/v2/devices/device-0");
        if (status !== 200) throw new Error(`answered ${status}`);
      });
      await asked;
      if (lost > 0) throw new Error(`${lost} reads failed: ${[...reasons].join(", ")}`);
      return { "read, p50, ms": median(ms), "read, p99, ms": p99(ms) };
    },
    async [Symbol.asyncDispose]() {
      await mesh.stop();
      await folder.remove();
    },
  };
}

const startBefore = await startMeshBefore();
await using mesh = await startListedMesh(startMesh);
await using earlier = startBefore && (await startListedMesh(startBefore));
const alone = "alone";
const beside = { [`${clients} abandoned lists`]: hangUpMs, [`${clients} lists`]: roundMs };
const contenders = ({ readBeside }: typeof mesh, suffix: string) => [
  [alone + suffix, () => readBeside(0, 0)] as const,
  ...Object.entries(beside).map(
    ([name, staysMs]) => [`beside ${name}${suffix}`, () => readBeside(clients, staysMs)] as const,
  ),
];
const measured = await inTurns(
  rounds,
  Object.fromEntries([...contenders(mesh, ""), ...(earlier ? contenders(earlier, ", mesh before") : [])]),
);
console.log(`${count} devices, median (min–max) of ${rounds} rounds`);
for (const name of Object.keys(beside)) {
  const ours = `beside ${name}`;
  report(measured, { ours, peer: alone, goals: { "read, p99, ms": { ratio: 5 } }, digits: 1 });
  if (earlier) report(measured, { ours, peer: `${ours}, mesh before`, digits: 1 });
}
