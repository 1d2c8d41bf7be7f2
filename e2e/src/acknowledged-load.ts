import { setTimeout as sleep } from "node:timers/promises";
import { connectMqttDevice } from "@devmesh/testkit/mqtt-device";

/** Messages in flight of a sender, and its pause between batches in milliseconds: fewer than can be stored at once. */
const AT_ONCE = 10;
const PAUSE_MS = 50;

/** A device that publishes numbers at QoS 1 until it is stopped, and remembers which were acknowledged. */
export interface Sender extends AsyncDisposable {
  readonly id: string;
  readonly topic: string;
  /** Each number is published once; one without acknowledgement is not sent again. */
  readonly acknowledged: ReadonlySet<number>;
  /** Connections so far. */
  readonly logins: number;
  /** Stops; resolves when nothing is in flight. */
  stop(): Promise<void>;
}

/** Starts a sender that connects to the next listener whenever its connection is lost. */
export function startSender(device: { id: string; token: string }, listeners: readonly string[]): Sender {
  const topic = `db/${device.id}/count`;
  const acknowledged = new Set<number>();
  let next = 0;
  let logins = 0;
  let turn = Math.floor(Math.random() * listeners.length);
  let sending = true;

  async function send() {
    while (sending) {
      const url = listeners[turn++ % listeners.length] ?? "";
      const connection = await connectMqttDevice({ url, ...device }).catch(() => null);
      if (!connection) {
        await sleep(100);
        continue;
      }
      logins++;
      const closed = connection.closed();
      while (sending && connection.client.connected) {
        const numbers = Array.from({ length: AT_ONCE }, () => next++);
        const published = numbers.map(async (number) => {
          await connection.publish(topic, String(number), 1);
          acknowledged.add(number);
        });
        await Promise.race([Promise.allSettled(published), closed]);
        await sleep(PAUSE_MS);
      }
      await connection.client.endAsync(true).catch(() => undefined);
    }
  }

  const running = send();
  const stop = async () => {
    sending = false;
    await running;
  };
  return {
    id: device.id,
    topic,
    acknowledged,
    get logins() {
      return logins;
    },
    stop,
    [Symbol.asyncDispose]: stop,
  };
}
