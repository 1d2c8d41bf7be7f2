import { dataFolder } from "@devmesh/supervisor/mesh/data-folder";
import { readInstallation } from "@devmesh/supervisor/mesh/installation";
import type { TestMesh } from "@devmesh/testkit/mesh";
import { type Child, startChild } from "./child.ts";

/** Settings of a mesh in which one key makes all requests and one device answers all calls. */
export const withoutRateLimits = {
  RATE_MASTER: "1000000",
  DEVICE_RATE_MESSAGES: "1000000",
  DEVICE_RATE_BYTES: "1000000000",
};

/** What a device logs in with. */
export interface Credentials {
  readonly id: string;
  readonly token: string;
}

/** Creates devices `bench-0`, `bench-1`, … over REST, some at a time. */
export async function createDevices(mesh: TestMesh, count: number): Promise<Credentials[]> {
  const created: Credentials[] = [];
  const next = numbers(count);
  const work = async () => {
    for (const nth of next) {
      const id = `bench-${nth}`;
      const { status, text, json } = await mesh.http("/api/v2/devices", { body: { id } });
      if (status !== 201 || !hasToken(json)) throw new Error(`creating ${id}: ${status} ${text}`);
      created.push({ id, token: json.token });
    }
  };
  await Promise.all(Array.from({ length: 10 }, work));
  return created;
}

/** Creates a device `bench-0`, which answers each call with its parameters in another process. */
export async function startEchoDevice(mesh: TestMesh): Promise<Child> {
  const [device] = await createDevices(mesh, 1);
  const child = startChild(import.meta.resolve("./rpc-round-trip/echo-device.ts"), {
    BENCH_MQTT_URL: mesh.mqttUrl,
    BENCH_DEVICE_ID: device?.id,
    BENCH_DEVICE_TOKEN: device?.token,
  });
  await child.ready;
  return child;
}

/** A sequence that several iterators share. */
export function* numbers(count: number): Generator<number> {
  for (let nth = 0; nth < count; nth++) yield nth;
}

function hasToken(json: unknown): json is { readonly token: string } {
  return typeof json === "object" && json !== null && "token" in json && typeof json.token === "string";
}

/** The password of a user of a mesh's broker. */
export async function brokerPassword({ dataDir }: TestMesh, user: string): Promise<string> {
  const password = (await readInstallation(dataFolder(dataDir).installation))?.passwords[user];
  if (password === undefined) throw new Error(`the broker has no user ${user}`);
  return password;
}
