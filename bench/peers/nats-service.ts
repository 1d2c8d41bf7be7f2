/** The service of the peer with NATS requests. */
import { connect } from "@nats-io/transport-node";
import { reportReady } from "../child.ts";
import { subjects } from "./contract.ts";
import { environment } from "./environment.ts";
import { openPeerStore } from "./store.ts";

const store = openPeerStore(environment.storePath);
const connection = await connect({ servers: environment.natsUrl, noAsyncTraces: true });

function answer(subject: string, read: (id: string) => unknown): void {
  connection.subscribe(subject, {
    queue: "service",
    callback: (error, message) => {
      if (error) return;
      message.respond(JSON.stringify(read(message.json<{ id: string }>().id)));
    },
  });
}

answer(subjects.readDevice, (id) => store.readDevice(id));
answer(subjects.verifyKey, (digest) => store.readKey(digest));
await connection.flush();
reportReady();
