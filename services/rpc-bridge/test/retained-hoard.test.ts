import { devicesUser } from "@devmesh/device-broker/devices-account";
import { listRetainedTopics } from "@devmesh/device-broker/retained-messages";
import { connectBus } from "@devmesh/service-kit/bus";
import { systemClock } from "@devmesh/service-kit/clock";
import { createLogger } from "@devmesh/service-kit/logger";
import { eventually } from "@devmesh/testkit/eventually";
import { storeRetained } from "@devmesh/testkit/retained-messages";
import { expect, test } from "@jest/globals";
import { createBrokerStorage } from "../src/broker-housekeeping/broker-storage.ts";
import { createEndSessions, createWipeDevice } from "../src/broker-housekeeping/wipe-device.ts";
import { openMqttLink } from "../src/mqtt-link.ts";
import { password, startBridgeFixture } from "./bridge-fixture.ts";

const page = 1_000;

test("a wipe clears retained messages page by page, and goes on where one that was cut off ended", async () => {
  await using mesh = await startBridgeFixture();
  await using neighbour = await mesh.connect("calm");
  await neighbour.publish("calm/event/kept", "stays", 1, true);
  await storeRetained(mesh.broker.port, [
    ...Array.from({ length: 3_500 }, (_, n) => `hoard/event/${n}`),
    ...Array.from({ length: 1_500 }, (_, n) => `db/hoard/${n}`),
  ]);

  const log = createLogger({ service: "test", level: "silent" });
  const user = devicesUser("rpc-bridge");
  const login = { urls: [mesh.broker.mqttUrl], user, password };
  const bus = await connectBus({ url: mesh.broker.url, user, password, name: "rpc-bridge", log });
  const link = openMqttLink({ login, clientId: "_wiping", clock: systemClock, log });
  await link.ready;
  const { signal } = new AbortController();
  const cutOff = new AbortController();
  let pages = 0;
  const wipe = createWipeDevice({
    storage: {
      ...createBrokerStorage({ bus, link, streamBytes: 1_000_000, signal }),
      async retainedTopics(id) {
        if (++pages === 3) cutOff.abort(new Error("cut off"));
        return await listRetainedTopics(bus, id, page);
      },
    },
    endSessions: createEndSessions(login),
    link,
    forget: () => undefined,
  });
  const left = async () => (await listRetainedTopics(bus, "hoard")).total;

  await expect(wipe("hoard", [], { signal: cutOff.signal, log })).rejects.toThrow("cut off");
  // The broker deletes what it cleared in the background, so that pages overlap.
  await eventually(async () => (await left()) <= 2_500);
  await wipe("hoard", [], { signal, log });
  expect(await left()).toBe(0);
  await using later = await mesh.connect("hoard");
  for (const filter of ["hoard/event/+", "db/hoard/+"]) await later.subscribe(filter);
  await later.publish("hoard/event/sign", "a sign", 1);
  await later.awaitMessage("hoard/event/sign");
  expect(later.messages).toHaveLength(1);
  await neighbour.subscribe("calm/event/kept");
  expect((await neighbour.awaitMessage("calm/event/kept")).payload).toBe("stays");
  await link.close();
  await bus.close();
}, 300_000);
