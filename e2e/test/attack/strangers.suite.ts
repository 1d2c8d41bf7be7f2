import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { eventually } from "@devmesh/testkit/eventually";
import type { TestMesh } from "@devmesh/testkit/mesh";
import { connectMqttDevice } from "@devmesh/testkit/mqtt-device";
import {
  boundsBandwidth,
  findHaproxy,
  startMqttProxy,
  type TestMqttProxy,
  withoutHaproxy,
} from "@devmesh/testkit/mqtt-proxy";
import { logIn, longNames, unfinishedConnects, wrongLogins } from "@devmesh/testkit/strangers";
import { tempFolder } from "@devmesh/testkit/temp-folder";
import { foreignCertificate } from "@devmesh/testkit/test-certificate";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { enrolDevice } from "../../src/tenant.ts";

/** Strangers connect from `stranger`, devices from `home`. */
const [home, stranger] = ["127.0.0.1", "127.0.0.2"];
const maxBrokerMegabytes = 300;

const haproxy = await findHaproxy();
const withHaproxy = haproxy === null ? describe.skip : describe;
const withBandwidth = haproxy !== null && (await boundsBandwidth(haproxy)) ? test : test.skip;

/** The most memory that the broker had at a time. */
async function largestBrokerMegabytes(mesh: TestMesh): Promise<number> {
  const { nats_server } = await mesh.parts();
  const status = await readFile(`/proc/${nats_server?.pid}/status`, "utf8");
  return Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1]) / 1_000;
}

/** Strangers at the proxy in front of MQTT. The broker has had little other load, since its memory is measured. */
export function strangers(shared: () => TestMesh, websocketPort: () => number): void {
  withHaproxy(`with HAProxy in front of MQTT${haproxy === null ? ` (${withoutHaproxy})` : ""}`, () => {
    let mesh: TestMesh;
    let proxy: TestMqttProxy;
    beforeAll(async () => {
      mesh = shared();
      proxy = await startMqttProxy(haproxy ?? "", { port: mesh.ports.mqtt, websocketPort: websocketPort() });
    }, 120_000);
    afterAll(async () => await proxy?.[Symbol.asyncDispose](), 60_000);

    async function expectServed(url: string, id: string): Promise<void> {
      const { token } = await enrolDevice(mesh, id);
      await using device = await connectMqttDevice({ url, id, token });
      await device.answerRpc(({ params }) => ({ result: params }));
      const called = await mesh.http(`/api/v2/devices/${id}/rpc/Echo`, { body: { id } });
      expect(called).toMatchObject({ status: 200, json: { id } });
      await device.publish(`db/${id}/blob`, "x".repeat(200_000), 1);
      await eventually(async () => (await mesh.http(`/api/v2/data?device_id=${id}`)).json.length === 1);
    }

    test("a device is served as without it, also over WebSocket", async () => {
      await expectServed(`mqtt://127.0.0.1:${proxy.port}`, "over-tcp");
      await expectServed(`ws://127.0.0.1:${proxy.websocketPort}/mqtt`, "over-websocket");
    });

    test("unfinished CONNECTs of 900 KB and CONNECTs with names of 60 KB cost the broker no memory", async () => {
      const { token } = await enrolDevice(mesh, "beside-memory");
      await unfinishedConnects({ port: proxy.port, from: stranger }, 1_500);
      await longNames({ port: proxy.port, from: stranger }, 2_000);
      expect(await logIn({ port: proxy.port, from: home }, "beside-memory", token)).not.toBeNull();
      expect(await largestBrokerMegabytes(mesh)).toBeLessThan(maxBrokerMegabytes);
    });

    test("thousands of wrong logins from one address keep no device of another out", async () => {
      const { token } = await enrolDevice(mesh, "beside-logins");
      const flood = wrongLogins({ port: proxy.port, from: "127.0.0.3" }, 2_000, 8_000);
      const waits: (number | null)[] = [];
      let over = false;
      void flood.finally(() => {
        over = true;
      });
      while (!over) {
        waits.push(await logIn({ port: proxy.port, from: home }, "beside-logins", token));
        // A device may log in sixty times a minute.
        await sleep(250);
      }
      expect(await flood).toBeGreaterThan(5_000);
      expect(waits).not.toContain(null);
    });

    withBandwidth(
      "what a device sends over all its connections is bounded, and no other waits for it (HAProxy 2.7)",
      async () => {
        const bytesPerSecond = 100_000;
        const bounds = { MQTT_BYTES_PER_DEVICE: String(bytesPerSecond) };
        await using bounding = await startMqttProxy(haproxy ?? "", { port: mesh.ports.mqtt }, bounds);
        const url = `mqtt://127.0.0.1:${bounding.port}`;
        const [loud, quiet] = [await enrolDevice(mesh, "loud"), await enrolDevice(mesh, "quiet")];
        await using first = await connectMqttDevice({
          url,
          id: "loud",
          token: loud.token,
          clientId: "loud:1",
        });
        await using second = await connectMqttDevice({
          url,
          id: "loud",
          token: loud.token,
          clientId: "loud:2",
        });
        await using other = await connectMqttDevice({ url, id: "quiet", token: quiet.token });
        const startedAt = performance.now();
        let published = false;
        const flood = Promise.all(
          [first, second].map((device) => device.publish("db/loud/blob", "x".repeat(400_000), 1)),
        ).then(() => {
          published = true;
        });
        await other.publish("db/quiet/n", "1", 1);
        expect(published).toBe(false);
        await flood;
        // The sockets and the first second take some of it at once.
        expect(performance.now() - startedAt).toBeGreaterThan(4_000);
      },
    );

    test("with a certificate it ends TLS, with MQTT and with its WebSocket", async () => {
      await using folder = await tempFolder();
      const tlsCert = join(folder.path, "tls.crt");
      await writeFile(tlsCert, foreignCertificate.cert);
      await writeFile(join(folder.path, "tls.key"), foreignCertificate.key);
      const broker = { port: mesh.ports.mqtt, websocketPort: websocketPort() };
      await using withTls = await startMqttProxy(haproxy ?? "", broker, { MQTT_TLS_CERT: tlsCert });
      const { token } = await enrolDevice(mesh, "by-tls");
      for (const url of [
        `mqtts://127.0.0.1:${withTls.port}`,
        `wss://127.0.0.1:${withTls.websocketPort}/mqtt`,
      ]) {
        await using device = await connectMqttDevice({ url, id: "by-tls", token, tlsCert });
        await device.publish("db/by-tls/n", "1", 1);
      }
      expect(await logIn({ port: withTls.port, from: home }, "by-tls", token)).toBeNull();
    });

    test("a stop ends it with exit code 0", async () => {
      expect(await proxy.stop()).toBe(0);
    });
  });
}
