/** A Moleculer node whose actions check their params by fastest-validator. */
import { Errors } from "moleculer";
import { reportReady } from "../child.ts";
import { deviceIdPattern } from "./contract.ts";
import { environment } from "./environment.ts";
import { createBroker } from "./moleculer-broker.ts";
import { openPeerStore } from "./store.ts";

const store = openPeerStore(environment.storePath);
const broker = createBroker("service");
broker.createService({
  name: "devices",
  actions: {
    read: {
      params: { id: { type: "string", pattern: deviceIdPattern } },
      handler(context: { params: { id: string } }) {
        const device = store.readDevice(context.params.id);
        if (device === null) throw new Errors.MoleculerClientError("There is no such device.", 404);
        return device;
      },
    },
  },
});
broker.createService({
  name: "keys",
  actions: {
    verify: {
      params: { digest: "string" },
      handler: (context: { params: { digest: string } }) => store.readKey(context.params.digest),
    },
  },
});
await broker.start();
reportReady();
