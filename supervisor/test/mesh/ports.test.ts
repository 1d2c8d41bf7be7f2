import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { describe, expect, test } from "@jest/globals";
import { checkPorts } from "../../src/mesh/ports.ts";

describe("ports are checked before anything starts", () => {
  test("one in use is named together with its variable", async () => {
    const server = createServer();
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const wanted = [{ variable: "MQTT_PORT", port, hostVariable: "MQTT_HOST", host: "127.0.0.1" }];
    await expect(checkPorts(wanted)).rejects.toThrow(
      `Port ${port} is in use already; set MQTT_PORT to another one.`,
    );
    server.close();
    await once(server, "close");
    await checkPorts(wanted);
  });

  test("one that is wanted twice is told with both variables", async () => {
    const wanted = [
      { variable: "PORT", port: 4000, hostVariable: "HOST", host: "127.0.0.1" },
      { variable: "NATS_PORT", port: 4000, hostVariable: "NATS_HOST", host: "127.0.0.1" },
    ];
    await expect(checkPorts(wanted)).rejects.toThrow("PORT and NATS_PORT are both 4000");
  });

  test("an address of another machine is named with its variable", async () => {
    const wanted = [{ variable: "MQTT_PORT", port: 4001, hostVariable: "MQTT_HOST", host: "192.0.2.1" }];
    await expect(checkPorts(wanted)).rejects.toThrow(
      "192.0.2.1 is not an address of this machine; set MQTT_HOST to one that is.",
    );
  });
});
