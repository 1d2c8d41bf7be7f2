import { connectDevice } from "@devmesh/simulator/device-connection";
import type { TestMesh } from "@devmesh/testkit/mesh";
import { brokerPassword, type Credentials } from "./mesh-tenant.ts";

/** The only user of the broker that may publish to devices and receive their replies. */
export const bridgeUser = "rpc-bridge.devices";

/** Connects a device that answers each call with its parameters; `onCall` comes before each answer. */
export async function answerCalls(url: string, { id, token }: Credentials, onCall?: () => void) {
  const device = await connectDevice({ url, id, token }, (topic, payload) => {
    if (topic !== `${id}/rpc`) return;
    const { id: call, src, params = null } = JSON.parse(payload.toString("utf8"));
    onCall?.();
    device.publish(`${src}/rpc`, JSON.stringify({ id: call, result: params }));
  });
  await device.subscribeAsync(`${id}/rpc`);
  return device;
}

/** Calls devices over the broker of a mesh by MQTT.js alone. */
export interface DirectCaller extends AsyncDisposable {
  /** Resolves with the answer, whatever it is. */
  call(device: string, method: string, params: object): Promise<void>;
}

export async function connectDirectCaller(mesh: TestMesh): Promise<DirectCaller> {
  const waiting = new Map<number, () => void>();
  const password = await brokerPassword(mesh, bridgeUser);
  const client = await connectDevice(
    { url: mesh.mqttUrl, id: bridgeUser, token: password, clientId: "_bench" },
    (_topic, payload) => waiting.get(JSON.parse(payload.toString("utf8")).id)?.(),
  );
  await client.subscribeAsync("+/r/bench/rpc");
  let lastId = 0;
  return {
    call(device, method, params) {
      const id = ++lastId;
      return new Promise((resolve) => {
        waiting.set(id, () => {
          waiting.delete(id);
          resolve();
        });
        client.publish(`${device}/rpc`, JSON.stringify({ id, src: `${device}/r/bench`, method, params }));
      });
    },
    [Symbol.asyncDispose]: () => client.endAsync(),
  };
}
