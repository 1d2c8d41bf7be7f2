import { connect } from "@nats-io/transport-node";
import { reportReady } from "../child.ts";
import { device } from "./device.ts";
import { rawSubject } from "./raw-subject.ts";

/** The peer of the stand-ins: prints the device as JSON on each request, and does nothing else. */
const connection = await connect({ servers: process.env.NATS_URL ?? "", noAsyncTraces: true });
connection.subscribe(rawSubject, {
  callback: (_error, message) => void message.respond(JSON.stringify(device)),
});
await connection.flush();
reportReady();
