import { connect, type Socket } from "node:net";
import { loginTimeoutMs } from "@devmesh/device-broker/broker-config";
import { ManualClock } from "@devmesh/service-kit/testing/manual-clock";
import { connectPacket } from "@devmesh/testkit/connect-packet";
import { expect, test } from "@jest/globals";
import { startKeysIn, startWorld } from "./running-keys.ts";

const devices = 2_000;
/** Those that log in first, all at once, show how fast the machine is. */
const first = 200;

test("of two thousand devices that connect at once, or of what the broker can wait for, none is refused", async () => {
  await using world = await startWorld();
  await world.provisionDeviceStreams();
  await using service = await startKeysIn(world, { clock: new ManualClock(new Date()) });
  const logins: Login[] = [];
  for (let from = 0; from < devices; from += 200) {
    const ids = Array.from({ length: 200 }, (_, at) => `pump-${from + at}`);
    logins.push(
      ...(await Promise.all(
        ids.map(async (id) => ({ id, ...(await service.call("issueCredentials", { device_id: id })) })),
      )),
    );
  }
  /** How often the broker answered what. */
  async function connectAll(some: readonly Login[]) {
    const sockets: Socket[] = [];
    const counted = new Map<string, number>();
    const answers = some.map((login) => {
      const socket = connect({ host: "127.0.0.1", port: world.broker.mqttPort });
      sockets.push(socket);
      return connackOf(socket, login);
    });
    for (const answer of await Promise.all(answers)) counted.set(answer, (counted.get(answer) ?? 0) + 1);
    for (const socket of sockets) socket.destroy();
    return [...counted];
  }
  const beganMs = performance.now();
  expect(await connectAll(logins.slice(0, first))).toEqual([["accepted", first]]);
  const eachMs = (performance.now() - beganMs) / first;
  // A machine that needs more than half of the broker's wait for all of them gets fewer.
  const count = Math.min(devices, Math.floor(loginTimeoutMs / 2 / eachMs));
  expect(await connectAll(logins.slice(0, count))).toEqual([["accepted", count]]);
}, 120_000);

interface Login {
  readonly id: string;
  readonly token: string;
}

/** How the broker answers a CONNECT packet of MQTT 3.1.1 with the device's own client id. */
function connackOf(socket: Socket, { id, token }: Login): Promise<string> {
  return new Promise((resolve) => {
    socket.on("data", (connack) => resolve(connack[3] === 0 ? "accepted" : `refused with ${connack[3]}`));
    socket.on("error", (error) => resolve(error.message));
    socket.on("close", () => resolve("closed"));
    socket.write(connectPacket(id, token, id));
  });
}
