/** Fastify 5 with NATS requests: input checked by JSON schema, the answer of the service passes through as bytes. */
import type { AddressInfo } from "node:net";
import { fastify, LogController } from "fastify";
import { reportReady } from "../child.ts";
import { log } from "./access-log.ts";
import { deviceIdPattern } from "./contract.ts";
import { checkKey, readDevice } from "./nats-client.ts";

const app = fastify({
  loggerInstance: log,
  logController: new LogController({ disableRequestLogging: true }),
});
app.addHook("onRequest", async (request, reply) => {
  const caller = await checkKey(request.headers.authorization);
  if (caller === null) await reply.code(401).send();
});
app.addHook("onResponse", async (request, reply) => {
  const { method, routeOptions } = request;
  const ms = Math.round(reply.elapsedTime * 10) / 10;
  request.log.info({ method, route: routeOptions.url, status: reply.statusCode, ms }, "request");
});
app.get<{ Params: { id: string } }>(
  "/api/v2/devices/:id",
  {
    schema: {
      params: {
        type: "object",
        properties: { id: { type: "string", pattern: deviceIdPattern.source } },
        required: ["id"],
      },
    },
  },
  async (request, reply) => {
    const device = await readDevice(request.params.id);
    if (device === null) return await reply.code(404).send();
    return await reply.type("application/json").send(device);
  },
);
await app.listen({ port: 0, host: "127.0.0.1" });
reportReady((app.server.address() as AddressInfo).port);
