import { connect } from "@nats-io/transport-node";
import { subjects } from "./contract.ts";
import { environment } from "./environment.ts";
import { createKeyCheck } from "./key-check.ts";

const connection = await connect({ servers: environment.natsUrl, noAsyncTraces: true });
const ask = async (subject: string, id: string) =>
  await connection.request(subject, JSON.stringify({ id }), { timeout: 5_000 });

/** JSON of a device as the service sent it; null: there is none. */
export async function readDevice(id: string): Promise<Buffer | null> {
  const { data } = await ask(subjects.readDevice, id);
  const json = Buffer.from(data.buffer, data.byteOffset, data.length);
  return json.equals(nothing) ? null : json;
}

const nothing = Buffer.from("null");

export const checkKey = createKeyCheck(async (digest) => (await ask(subjects.verifyKey, digest)).json());
