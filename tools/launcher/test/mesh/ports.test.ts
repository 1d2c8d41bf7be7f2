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
    await expect(checkPorts("127.0.0.1", [{ variable: "MQTT_PORT", port }])).rejects.toThrow(
      `Port ${port} is in use already; set MQTT_PORT to another one.`,
    );
    server.close();
    await once(server, "close");
    await checkPorts("127.0.0.1", [{ variable: "MQTT_PORT", port }]);
  });

  test("one that is wanted twice is told with both variables", async () => {
    const wanted = [
      { variable: "PORT", port: 4000 },
      { variable: "NATS_PORT", port: 4000 },
    ];
    await expect(checkPorts("127.0.0.1", wanted)).rejects.toThrow("PORT and NATS_PORT are both 4000");
  });

  test("an address of another machine is told as HOST", async () => {
    await expect(checkPorts("192.0.2.1", [{ variable: "PORT", port: 4001 }])).rejects.toThrow(
      /192\.0\.2\.1 .*HOST/,
    );
  });
});
