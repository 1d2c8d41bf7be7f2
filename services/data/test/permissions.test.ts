import { join } from "node:path";
import { connectBus } from "@devmesh/service-kit/bus";
import { createLogger } from "@devmesh/service-kit/logger";
import { startBroker } from "@devmesh/testkit/broker";
import { eventually } from "@devmesh/testkit/eventually";
import { connectMqttDevice } from "@devmesh/testkit/mqtt-device";
import { startService } from "@devmesh/testkit/service-process";
import { tempFolder } from "@devmesh/testkit/temp-folder";
import { expect, test } from "@jest/globals";
import { dataCaller } from "./data-caller.ts";

test("the service's own broker users suffice for all it does, and it is ready once the broker has a stream for its consumer", async () => {
  await using folder = await tempFolder();
  await using broker = await startBroker();
  await using service = await startService("data", {
    ...broker.environmentOf("data"),
    STORE_URL: `sqlite:${join(folder.path, "data.db")}`,
  });
  const ready = async () => (await fetch(`${service.ops}/readyz`)).status === 200;
  expect(await ready()).toBe(false);

  const password = broker.passwords["rpc-bridge.devices"] ?? "";
  const log = createLogger({ service: "test", level: "silent" });
  // Its login by MQTT makes the stream. It may publish on any topic of a device, so it can act as one here.
  await using bridge = await connectMqttDevice({
    url: broker.mqttUrl,
    id: "rpc-bridge.devices",
    token: password,
    clientId: "bridge",
  });
  await eventually(ready);

  await bridge.publish("db/pump/x", "kept", 1);
  await bridge.publish("db/pump/x", "transient", 0);
  const gateway = await connectBus({
    url: broker.url,
    name: "gateway",
    user: "gateway.mesh",
    password: broker.passwords.gateway ?? "",
    log,
  });
  const caller = dataCaller(gateway);
  const messages = await eventually(async () => {
    const records = await caller.allRecords({});
    return records.length === 2 ? records.map((record) => record.message) : null;
  });
  expect(messages.sort()).toEqual(["kept", "transient"]);
  expect(broker.log()).not.toMatch(/permissions violation/i);
  await gateway.close();
  expect(await service.end("SIGTERM")).toBe(0);
});
