import { mkdir, readdir, readFile, stat, writeFile } from "node:fs/promises";
import { totalmem } from "node:os";
import { join } from "node:path";
import { serviceNames } from "@devmesh/contracts/mesh";
import { eventually } from "@devmesh/testkit/eventually";
import { freePort, isListening } from "@devmesh/testkit/free-port";
import { launchMesh, startMesh, type TestMesh } from "@devmesh/testkit/mesh";
import { connectMqttDevice, type MqttDevice } from "@devmesh/testkit/mqtt-device";
import { startNatsServer } from "@devmesh/testkit/nats-server";
import { tempFolder } from "@devmesh/testkit/temp-folder";
import { foreignCertificate, testCertificate } from "@devmesh/testkit/test-certificate";
import { expect, test } from "@jest/globals";

async function tokenOf(mesh: TestMesh, id: string): Promise<string> {
  return (await mesh.http("/api/v2/devices", { body: { id } })).json.token;
}

/** A call goes to the device, its answer comes back, and what it publishes is stored. */
async function expectServed(mesh: TestMesh, device: MqttDevice): Promise<void> {
  await device.answerRpc(({ params }) => ({ result: params }));
  const called = await mesh.http(`/api/v2/devices/${device.id}/rpc/Echo`, { body: [1, "two"] });
  expect(called).toMatchObject({ status: 200, json: [1, "two"] });
  await device.publish(`db/${device.id}/x`, "21", 1);
  await eventually(async () => (await mesh.http(`/api/v2/data?filter=db/${device.id}/`)).json.length === 1);
}

/** Files and folders below a folder that others than their owner may touch. */
async function opened(folder: string): Promise<string[]> {
  const paths = (await readdir(folder, { recursive: true })).map((name) => join(folder, name));
  // The broker removes files of its streams meanwhile.
  const modes = await Promise.all(
    paths.map(async (path) => ((await stat(path).catch(() => null))?.mode ?? 0) & 0o077),
  );
  return paths.filter((_path, at) => modes[at] !== 0);
}

test("MQTT and its WebSocket speak TLS with a certificate of any name and authority, the mesh's own devices too", async () => {
  await using folder = await tempFolder();
  const dataDir = join(folder.path, "data");
  // Made by the user, who left it open to others.
  await mkdir(dataDir, { mode: 0o755 });
  const files = { cert: join(folder.path, "cert.pem"), key: join(folder.path, "key.pem") };
  await writeFile(files.cert, foreignCertificate.cert);
  await writeFile(files.key, foreignCertificate.key);
  const websocketPort = await freePort();
  await using mesh = await startMesh({
    dataDir,
    args: ["--demo"],
    env: {
      MQTT_TLS_CERT: files.cert,
      MQTT_TLS_KEY: files.key,
      MQTT_WS_PORT: String(websocketPort),
    },
  });
  expect(mesh.output()).toContain("Simulated devices: demo-lamp, demo-pump, demo-weather.");
  const answer = await mesh.http("/api/v2/devices/demo-lamp/rpc/sum", { body: [1, 2] });
  expect(answer).toMatchObject({ status: 200, json: 3 });

  const token = await tokenOf(mesh, "pump-1");
  const url = mesh.mqttUrl.replace("mqtt:", "mqtts:");
  {
    await using device = await connectMqttDevice({ url, id: "pump-1", token, tlsCert: files.cert });
    await expectServed(mesh, device);
  }
  const overWebSocket = `wss://127.0.0.1:${websocketPort}/mqtt`;
  await using device = await connectMqttDevice({
    url: overWebSocket,
    id: "pump-2",
    token: await tokenOf(mesh, "pump-2"),
    tlsCert: files.cert,
  });
  await expectServed(mesh, device);

  const other = join(folder.path, "other.pem");
  await writeFile(other, testCertificate.cert);
  for (const place of [url, overWebSocket]) {
    const login = { url: place, id: "pump-1", token };
    await expect(connectMqttDevice({ ...login, tlsCert: other })).rejects.toThrow();
    await expect(connectMqttDevice(login)).rejects.toThrow(/certificate/);
  }
  await expect(connectMqttDevice({ url: mesh.mqttUrl, id: "pump-1", token })).rejects.toThrow();
  expect(await opened(dataDir)).toEqual([]);
}, 120_000);

test("with HOST on all addresses devices reach MQTT on each, and the services' port is on the loopback alone", async () => {
  const args = serviceNames.filter((name) => name !== "keys").flatMap((name) => ["--without", name]);
  await using mesh = await startMesh({ args, env: { HOST: "0.0.0.0" } });
  expect(mesh.output()).toContain("MQTT listens on 0.0.0.0 without a proxy.");
  expect(await isListening(mesh.ports.mqtt, "127.0.0.2")).toBe(true);
  expect(await isListening(mesh.ports.nats, "127.0.0.1")).toBe(true);
  expect(await isListening(mesh.ports.nats, "127.0.0.2")).toBe(false);

  const { nats_server } = await mesh.parts();
  const environment = await readFile(`/proc/${nats_server?.pid}/environ`, "utf8");
  const [, limit] = /^GOMEMLIMIT=(\d+)$/m.exec(environment.replaceAll("\0", "\n")) ?? [];
  expect(Number(limit)).toBeGreaterThan(0);
  expect(Number(limit)).toBeLessThanOrEqual(totalmem() / 2);
}, 120_000);

test("a mesh uses the nats-server that NATS_URL names, with the configuration it wrote, and leaves it running", async () => {
  await using folder = await tempFolder();
  const dataDir = join(folder.path, "data");
  const [natsPort, mqttPort, websocketPort] = [await freePort(), await freePort(), await freePort()];
  const env = {
    NATS_URL: `nats://127.0.0.1:${natsPort}`,
    // Of no account beside NATS_URL.
    NATS_PORT: String(await freePort()),
    MQTT_PORT: String(mqttPort),
    MQTT_WS_PORT: String(websocketPort),
  };
  const configFile = join(dataDir, "nats-server.conf");
  {
    await using tooEarly = await launchMesh({ dataDir, env });
    expect(await tooEarly.ended()).toBe(1);
    expect(tooEarly.output()).toContain(
      `Nothing answers at ${env.NATS_URL}, which NATS_URL names; start nats-server there with --config ${configFile}.\n`,
    );
  }
  const written = await readFile(configFile, "utf8");
  await using _server = await startNatsServer({ config: () => written });
  {
    await using mesh = await startMesh({ dataDir, env });
    await using device = await connectMqttDevice({
      url: `ws://127.0.0.1:${websocketPort}/mqtt`,
      id: "pump-1",
      token: await tokenOf(mesh, "pump-1"),
    });
    await expectServed(mesh, device);
    expect((await mesh.parts()).nats_server).toBeNull();
  }
  expect(await isListening(natsPort)).toBe(true);
}, 120_000);
