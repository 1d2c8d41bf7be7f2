/** moleculer-web: a route with an alias, its `authenticate` hook and its own line for each response. */
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { Context } from "moleculer";
import ApiService, { type IncomingRequest } from "moleculer-web";
import { reportReady } from "../child.ts";
import { type Caller, createKeyCheck } from "./key-check.ts";
import { createBroker } from "./moleculer-broker.ts";

const { Errors } = ApiService;
const broker = createBroker("gateway");
const checkKey = createKeyCheck((digest) =>
  broker.call<Caller | null, { digest: string }>("keys.verify", { digest }),
);
const api = broker.createService({
  name: "api",
  mixins: [ApiService],
  settings: {
    port: 0,
    ip: "127.0.0.1",
    logRequest: null,
    logResponse: "info",
    routes: [
      {
        path: "/api/v2",
        mappingPolicy: "restrict",
        authentication: true,
        bodyParsers: false,
        aliases: { "GET devices/:id": "devices.read" },
      },
    ],
  },
  methods: {
    async authenticate(_context: Context, _route: unknown, request: IncomingRequest) {
      const caller = await checkKey(request.headers.authorization);
      if (caller === null) throw new Errors.UnAuthorizedError(Errors.ERR_INVALID_TOKEN, null);
      return caller;
    },
  },
});
await broker.start();
await broker.waitForServices(["devices", "keys"]);
const { server } = api as unknown as { readonly server: Server };
reportReady((server.address() as AddressInfo).port);
