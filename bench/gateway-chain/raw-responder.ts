import { connect } from "@nats-io/transport-node";
import { reportReady } from "../child.ts";
import { device, rawSubject } from "./device.ts";

/** The peer of the fakes: serialises the device for each request. */
const connection = await connect({ servers: process.env.NATS_URL ?? "", noAsyncTraces: true });
connection.subscribe(rawSubject, {
  callback: (_error, message) => void message.respond(JSON.stringify(device)),
});
await connection.flush();
reportReady();
