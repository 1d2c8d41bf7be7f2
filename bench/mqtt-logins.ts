/**
 * Logins of devices, by auth callout and with presence, against those of a user in the broker's configuration, on the
 * same mesh. `node bench/mqtt-logins.ts [logins]`
 */
import { connect } from "node:net";
import { connectPacket } from "@devmesh/testkit/connect-packet";
import { startMesh } from "@devmesh/testkit/mesh";
import { generate, parser } from "mqtt-packet";
import { inTurns, median, report } from "./measure.ts";
import { brokerPassword, createDevices, numbers } from "./mesh-tenant.ts";
import { cpuSeconds, meshProcesses } from "./process-usage.ts";

/** Logins of a round. Each occupies a local port for a minute. */
const logins = Number(process.argv[2] ?? 1_000);
const rounds = 5;
const atATime = 20;
const staticUser = "rpc-bridge.devices";

await using mesh = await startMesh();
const devices = await createDevices(mesh, 200);
const staticPassword = await brokerPassword(mesh, staticUser);

interface Login {
  readonly user: string;
  readonly password: string;
  readonly clientId: string;
}

/** Connects and leaves; resolves with the time until the broker accepts, in milliseconds. */
function logIn({ user, password, clientId }: Login): Promise<number> {
  return new Promise((resolve, reject) => {
    const begin = performance.now();
    const socket = connect({ host: "127.0.0.1", port: mesh.ports.mqtt, noDelay: true });
    const answers = parser({ protocolVersion: 4 });
    socket.on("error", reject);
    socket.on("close", () => reject(new Error(`the broker refused ${user}`)));
    socket.on("data", (piece) => answers.parse(piece));
    answers.on("packet", (packet) => {
      if (packet.cmd !== "connack" || packet.returnCode !== 0)
        return reject(new Error(`the broker refused ${user}`));
      resolve(performance.now() - begin);
      socket.end(generate({ cmd: "disconnect" }));
    });
    socket.write(connectPacket(user, password, clientId));
  });
}

async function measure(login: (nth: number) => Login) {
  const pids = Object.values(await meshProcesses(mesh));
  const before = await cpuSeconds(pids);
  const begin = performance.now();
  const latencies: number[] = [];
  const next = numbers(logins);
  const work = async () => {
    for (const nth of next) latencies.push(await logIn(login(nth)));
  };
  await Promise.all(Array.from({ length: atATime }, work));
  const seconds = (performance.now() - begin) / 1000;
  return {
    "logins/s": logins / seconds,
    "logins per CPU second of the mesh": logins / ((await cpuSeconds(pids)) - before),
    "p50, ms": median(latencies),
  };
}

const measured = await inTurns(rounds, {
  "devices, by callout": () =>
    measure((nth) => {
      const device = devices[nth % devices.length];
      if (!device) throw new Error("there are no devices");
      return { user: device.id, password: device.token, clientId: device.id };
    }),
  "static user": () =>
    measure((nth) => ({
      user: staticUser,
      password: staticPassword,
      clientId: `_bench-${nth % devices.length}`,
    })),
});
console.log(`${atATime} at a time, median (min–max) of ${rounds} rounds of ${logins} logins`);
report(measured, {
  ours: "devices, by callout",
  peer: "static user",
  goals: { "logins/s": { ratio: 0.7 } },
  digits: 1,
});
