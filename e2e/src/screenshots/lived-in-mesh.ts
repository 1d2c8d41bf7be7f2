import { setTimeout as sleep } from "node:timers/promises";
import { startFleet } from "@devmesh/simulator/fleet";
import { startMesh, type TestMesh } from "@devmesh/testkit/mesh";
import { asMaster } from "../tenant.ts";

/** A mesh with devices that have run for a while. */
export interface LivedInMesh extends AsyncDisposable {
  readonly mesh: TestMesh;
  /** A pump that is online. */
  readonly pump: string;
  /** A pump that is offline, and is to have another state. */
  readonly differing: string;
  /** Id of a job that waits for somebody to begin its last stage. */
  readonly job: string;
}

/** Devices of the calm fleet, and of one whose devices fail. */
const calm = { prefix: "unit", devices: 80 } as const;
const flaky = { prefix: "trial", devices: 6, faultSeed: 7 } as const;

/** Of the calm fleet: devices whose password was replaced, and which therefore do not come back. */
const lockedOut = ["unit-0007", "unit-0018"];

/** Starts a mesh with both fleets, keys, customers and calls, and lets it run. Stops all of it if `signal` fires. */
export async function startLivedInMesh(minutes: number, signal: AbortSignal): Promise<LivedInMesh> {
  const mesh = await startMesh();
  const access = { url: mesh.url, mqttUrl: mesh.mqttUrl, mqttTlsCert: undefined, masterKey: mesh.masterKey };
  const fleets = [startFleet(access, { ...calm, faultSeed: null }), startFleet(access, flaky)];
  const dispose = async () => {
    await Promise.all(fleets.map((fleet) => fleet.stop()));
    await mesh.stop();
  };
  try {
    await Promise.all(fleets.map(({ joined }) => joined));
    const [pump, differing] = ["unit-0001", "pump-spare"];
    await furnish(mesh, pump, differing);
    const job = await startJob(mesh);
    const until = performance.now() + minutes * 60_000;
    for (let calls = 0; performance.now() < until; calls++) {
      await callSome(mesh, calls);
      await sleep(2_000, undefined, { signal });
    }
    return { mesh, pump, differing, job, [Symbol.asyncDispose]: dispose };
  } catch (error) {
    await dispose();
    throw error;
  }
}

/** What people do with a fleet: keys, customers, changes, and a token that is replaced. */
async function furnish(mesh: TestMesh, pump: string, differing: string): Promise<void> {
  const master = asMaster(mesh);
  await master.post("devices", {
    id: differing,
    name: "Spare pump, Graz",
    shadow: { tags: { labels: ["pump", "graz", "spare"] } },
  });
  await master.post(`devices/${differing}`, {
    shadow: {
      state: {
        desired: { app: { mode: "manual", target_bar: 4 } },
        reported: { app: { mode: "auto", target_bar: 3 }, ota: { fw_version: "1.9.8" } },
      },
    },
  });
  await master.post("keys", { name: "Night shift" });
  await master.post("keys", { name: "Tenant, ground floor", device_id: pump });
  for (const email of ["ann.moreau@example.com", "j.kowalska@example.com", "t.berg@example.com"])
    await master.get(`/newcustomer?email=${email}`);
  await master.post(`devices/${pump}`, { shadow: { state: { desired: { app: { target_bar: 3.5 } } } } });
  for (const id of lockedOut) await master.send("POST", `devices/${id}/token`);
}

/** A job in stages, and one that the flaky fleet fails. Returns the id of the first. */
async function startJob(mesh: TestMesh): Promise<string> {
  const master = asMaster(mesh);
  await master.post("jobs", {
    name: "Read what runs on trial",
    target: { where: { text: { all: [flaky.prefix] } } },
    action: { kind: "rpc", func: "Sys.GetInfo", timeout: 5_000 },
  });
  const { json } = await master.post("jobs", {
    name: "Read what runs",
    target: { where: {} },
    action: { kind: "rpc", func: "Sys.GetInfo", timeout: 5_000 },
    rollout: { stages: [{ percent: 10 }, { percent: 50, proceed_at: 80, hold: true }], per_minute: 600 },
    pause_at: { failed_percent: 40 },
  });
  return json.id;
}

/** A call of the calm fleet, and one of the flaky fleet, which may not be answered. */
async function callSome(mesh: TestMesh, nth: number): Promise<void> {
  const master = asMaster(mesh);
  const id = `${calm.prefix}-${String(1 + ((nth * 7) % calm.devices)).padStart(4, "0")}`;
  await master.get(`devices/${id}/rpc/Sys.GetInfo?timeout=2000`);
  if (nth % 5 === 0)
    await master.get(`devices/${flaky.prefix}-000${1 + (nth % 6)}/rpc/RPC.List?timeout=1000`);
}
