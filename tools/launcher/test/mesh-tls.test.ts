import { execFile } from "node:child_process";
import { appendFile, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { eventually } from "@devmesh/testkit/eventually";
import { freePort } from "@devmesh/testkit/free-port";
import { launchMesh, startMesh, type TestMesh } from "@devmesh/testkit/mesh";
import { connectMqttDevice } from "@devmesh/testkit/mqtt-device";
import { startNatsServer } from "@devmesh/testkit/nats-server";
import { type TempFolder, tempFolder } from "@devmesh/testkit/temp-folder";
import { authorisedCertificate, testCertificate } from "@devmesh/testkit/test-certificate";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { executablesOnPath } from "../src/nats-server/path-search.ts";

const [mosquittoPub] = await executablesOnPath("mosquitto_pub", process.env.PATH);
const withMosquitto = mosquittoPub === undefined ? test.skip : test;

let folder: TempFolder;
let files: Record<"authority" | "cert" | "key" | "stranger", string>;

beforeAll(async () => {
  folder = await tempFolder();
  const place = (name: string) => join(folder.path, name);
  files = {
    authority: place("ca.pem"),
    cert: place("cert.pem"),
    key: place("key.pem"),
    stranger: place("other.pem"),
  };
  await writeFile(files.authority, authorisedCertificate.authority);
  await writeFile(files.cert, authorisedCertificate.cert);
  await writeFile(files.key, authorisedCertificate.key);
  await writeFile(files.stranger, testCertificate.cert);
});

afterAll(async () => {
  await folder.remove();
});

describe("clients that know the authority of the certificate", () => {
  let mesh: TestMesh;
  let urls: readonly string[];
  let token: string;

  beforeAll(async () => {
    const websocketPort = await freePort();
    mesh = await startMesh({
      env: { MQTT_TLS_CERT: files.cert, MQTT_TLS_KEY: files.key, MQTT_WS_PORT: String(websocketPort) },
    });
    urls = [`mqtts://localhost:${mesh.ports.mqtt}`, `wss://localhost:${websocketPort}/mqtt`];
    ({ token } = (await mesh.http("/api/v2/devices", { body: { id: "pump-1" } })).json);
  }, 120_000);

  afterAll(async () => {
    await mesh?.stop();
  });

  const connectKnowing = (url: string, ca: string) =>
    connectMqttDevice({ url, id: "pump-1", token }, { ca, wsOptions: { ca } });

  test("connect by mqtts and by wss under the host's name, and are served", async () => {
    for (const url of urls) {
      await using device = await connectKnowing(url, authorisedCertificate.authority);
      await device.answerRpc(({ params }) => ({ result: params }));
      const called = await mesh.http("/api/v2/devices/pump-1/rpc/Echo", { body: [url] });
      expect(called).toMatchObject({ status: 200, json: [url] });
    }
  });

  test("are refused by themselves where the authority is another, or none is named", async () => {
    for (const url of urls) {
      await expect(connectKnowing(url, testCertificate.cert)).rejects.toThrow(/certificate/);
      await expect(connectMqttDevice({ url, id: "pump-1", token })).rejects.toThrow(/certificate/);
    }
  });

  withMosquitto("mosquitto publishes by TLS with the authority's file, and not with another's", async () => {
    const publish = (authority: string) =>
      promisify(execFile)(mosquittoPub ?? "", [
        ...["-h", "localhost", "-p", String(mesh.ports.mqtt), "--cafile", authority, "-V", "mqttv311"],
        ...["-i", "pump-1:pub", "-u", "pump-1", "-P", token, "-t", "db/pump-1/x", "-q", "1", "-m", "21.5"],
      ]);
    await publish(files.authority);
    await eventually(async () => (await mesh.http("/api/v2/data?filter=db/pump-1/x")).json.length === 1);
    await expect(publish(files.stranger)).rejects.toThrow();
  });
});

test("a mesh reaches a nats-server of one's own by TLS, its authority in NODE_EXTRA_CA_CERTS", async () => {
  const dataDir = join(folder.path, "data");
  const natsPort = await freePort();
  const env = {
    NATS_URL: `tls://localhost:${natsPort}`,
    MQTT_PORT: String(await freePort()),
    NODE_EXTRA_CA_CERTS: files.authority,
  };
  const configFile = join(dataDir, "nats-server.conf");
  {
    await using first = await launchMesh({ dataDir, env });
    expect(await first.ended()).toBe(1);
    await appendFile(configFile, `tls: { cert_file: "${files.cert}", key_file: "${files.key}" }\n`);
  }
  const written = (await readFile(configFile, "utf8")).replace(/^port: .*$/m, `port: ${natsPort}`);
  await using _server = await startNatsServer({ config: () => written });
  await using mesh = await startMesh({ dataDir, env });
  const made = await mesh.http("/api/v2/devices", { body: { id: "pump-1" } });
  expect(made.status).toBe(201);
  const url = `mqtt://127.0.0.1:${env.MQTT_PORT}`;
  await using device = await connectMqttDevice({ url, id: "pump-1", token: made.json.token });
  await device.publish("db/pump-1/x", "21.5", 1);
  await eventually(async () => (await mesh.http("/api/v2/data?filter=db/pump-1/x")).json.length === 1);
}, 120_000);
