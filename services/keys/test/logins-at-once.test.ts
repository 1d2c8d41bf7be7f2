import { connect, type Socket } from "node:net";
import { ManualClock } from "@devmesh/service-kit/testing/manual-clock";
import { connectPacket } from "@devmesh/testkit/connect-packet";
import { expect, test } from "@jest/globals";
import { startKeysIn, startWorld } from "./running-keys.ts";

const devices = 2_000;

test("of two thousand devices that connect at once none is refused", async () => {
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
  const sockets: Socket[] = [];
  const answers = await Promise.all(
    logins.map(async (login) => {
      const socket = connect({ host: "127.0.0.1", port: world.broker.mqttPort });
      sockets.push(socket);
      return await connackOf(socket, login);
    }),
  );
  for (const socket of sockets) socket.destroy();
  const counted = new Map<string, number>();
  for (const answer of answers) counted.set(answer, (counted.get(answer) ?? 0) + 1);
  expect([...counted]).toEqual([["accepted", devices]]);
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
