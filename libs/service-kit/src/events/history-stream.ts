import { assertConnected, type Bus } from "../connection/bus.ts";
import { ensureHistoryStream, findStream, storeMessage, streamManager } from "../connection/streams.ts";
import { ServiceError } from "../errors.ts";
import { historyStreams } from "../subjects.ts";

/** How long the broker may take for one answer, in milliseconds. */
const answerMs = 2_000;

/** Most messages that are read: more than a stream of history holds. */
const maxRead = 2_000;

/** Which stream: the course of the mesh, or the last changes. */
export type HistoryName = keyof typeof historyStreams;

/** A message of a stream of history. */
interface HistoryMessage {
  readonly subject: string;
  readonly value: unknown;
  /** Messages of the same id within ten minutes are stored once. */
  readonly id?: string;
}

/** One stream of what the gateways keep together. */
export interface HistoryStream {
  /** Rejects without the broker. A value may be stored again: it replaces the former one where one is kept. */
  write(message: HistoryMessage): Promise<void>;
  /** The JSON of all messages, in the order in which they were stored; throws `unavailable` without the broker. */
  read(): Promise<unknown[]>;
}

export function createHistoryStream(bus: Bus, name: HistoryName): HistoryStream {
  const { stream } = historyStreams[name];
  let isReady = false;
  let reading: Promise<unknown[]> | undefined;

  async function readAll(): Promise<unknown[]> {
    const manager = await streamManager(bus, answerMs);
    if ((await findStream(manager, stream)) === null) return [];
    const messages = await manager.direct.getBatch(stream, { seq: 1, batch: maxRead });
    const timer = setTimeout(() => messages.stop(new Error("the stream does not answer")), answerMs);
    try {
      const values: unknown[] = [];
      for await (const message of messages) values.push(message.json());
      return values;
    } finally {
      clearTimeout(timer);
    }
  }

  return {
    async write({ subject, value, id }) {
      try {
        // With the bounds and copies that are configured now.
        if (!isReady) await ensureHistoryStream(bus, name);
        isReady = true;
        await storeMessage(bus, subject, JSON.stringify(value), { dedupeId: id });
      } catch (error) {
        isReady = false;
        throw error;
      }
    },
    async read() {
      assertConnected(bus);
      // A day takes some 100 ms of processor time to read: readers at one time share it.
      reading ??= readAll().finally(() => {
        reading = undefined;
      });
      try {
        return await reading;
      } catch (error) {
        throw ServiceError.of("unavailable", { service: "nats-server", cause: error });
      }
    },
  };
}
