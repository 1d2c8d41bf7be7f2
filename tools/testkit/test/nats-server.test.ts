import { connect } from "node:net";
import { describe, expect, test } from "@jest/globals";
import { isListening } from "../src/free-port.ts";
import { startNatsServer } from "../src/nats-server.ts";

describe("a nats-server of a test's own", () => {
  test("listens on free ports, with JetStream and MQTT when asked", async () => {
    await using server = await startNatsServer({ mqtt: true });
    expect(await isListening(server.port)).toBe(true);
    expect(await isListening(server.mqttPort)).toBe(true);
    expect(server.log()).toContain(server.storeDir);
  });

  test("comes up again on the same port after a kill", async () => {
    await using server = await startNatsServer();
    const first = server.pid;
    await server.kill();
    expect(await isListening(server.port)).toBe(false);
    await server.restart();
    expect(await isListening(server.port)).toBe(true);
    expect(server.pid).not.toBe(first);
  });

  test("that cannot start says why", async () => {
    await expect(startNatsServer({ config: "nonsense {" })).rejects.toThrow(/did not start/);
  });

  test("takes other ports where another process was faster", async () => {
    await using other = await startNatsServer();
    const places: number[] = [];
    await using server = await startNatsServer({
      config: ({ port }) => {
        places.push(port);
        const taken = places.length === 1 ? `http: "127.0.0.1:${other.port}"` : "";
        return `listen: "127.0.0.1:${port}"\n${taken}`;
      },
    });
    expect(places).toEqual([expect.any(Number), server.port]);
    expect(await isListening(server.port)).toBe(true);
  });

  test("is gone after stop", async () => {
    const server = await startNatsServer();
    await server.stop();
    await expect(
      new Promise((resolve, reject) =>
        connect(server.port, "127.0.0.1").once("connect", resolve).once("error", reject),
      ),
    ).rejects.toThrow("ECONNREFUSED");
  });
});
