import { setTimeout as sleep } from "node:timers/promises";
import type { DeviceLogin } from "@devmesh/simulator/device-connection";
import { connectMqttDevice, type MqttDevice } from "@devmesh/testkit/mqtt-device";
import type { RequestOutcome } from "./load-count.ts";

/** Pauses between two messages, and between two logins after a refused one, in milliseconds. */
const PUBLISH_MS = 500;
const LOGIN_MS = 200;

/** A device that echoes calls, publishes numbers at QoS 1, and logs in again whenever its connection is lost. */
export class LoadDevice {
  readonly id: string;
  /** Of messages. */
  readonly acknowledged = new Set<number>();
  /** Of the shadow, in the answers to its changes. */
  readonly versions = new Set<number>();
  changes = 0;
  logins = 0;
  readonly #login: DeviceLogin;
  readonly #first = Promise.withResolvers<void>();
  #connection: MqttDevice | null = null;
  #next = 0;
  #stopped = false;

  constructor(login: DeviceLogin) {
    this.#login = login;
    this.id = login.id;
  }

  /** Its connection while it receives calls: one object as long as it is the same connection. */
  get connection(): object | null {
    return this.#connection?.client.connected ? this.#connection : null;
  }

  connected(): Promise<void> {
    return this.#first.promise;
  }

  stop(): void {
    this.#stopped = true;
  }

  async run(count: (request: Promise<RequestOutcome>) => void): Promise<void> {
    const urls = this.#login.url.split(",");
    for (let turn = 0; !this.#stopped; ) {
      const url = urls[turn++ % urls.length] ?? "";
      // The certificate may be renewed meanwhile; the smoke has checked it.
      const device = await connectMqttDevice({ ...this.#login, url }, { rejectUnauthorized: false }).catch(
        () => null,
      );
      if (device === null) {
        await sleep(LOGIN_MS);
        continue;
      }
      this.logins++;
      await this.#publish(device, count);
      this.#connection = null;
      await device[Symbol.asyncDispose]();
    }
  }

  async #publish(device: MqttDevice, count: (request: Promise<RequestOutcome>) => void): Promise<void> {
    const closed = device.closed();
    const answering = device.answerRpc(({ params }) => ({ result: params ?? null }));
    try {
      await Promise.race([answering, closed]);
    } catch {
      return;
    }
    this.#connection = device;
    this.#first.resolve();
    while (!this.#stopped && device.client.connected) {
      const number = this.#next++;
      const acknowledged = device.publish(`db/${this.id}/count`, String(number), 1).then(
        (): RequestOutcome => {
          this.acknowledged.add(number);
          return "done";
        },
        (): RequestOutcome => ({ failed: "not sent" }),
      );
      const cut = closed.then(
        (): RequestOutcome => ({ failed: "connection lost before the acknowledgement" }),
      );
      count(Promise.race([acknowledged, cut]));
      await sleep(PUBLISH_MS);
    }
  }
}
