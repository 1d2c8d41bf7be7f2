/** Express 5 with NATS requests: the answer of the service passes through as bytes. */
import type { AddressInfo } from "node:net";
import express from "express";
import { z } from "zod";
import { reportReady } from "../child.ts";
import { logRequest } from "./access-log.ts";
import { deviceIdPattern } from "./contract.ts";
import { checkKey, readDevice } from "./nats-client.ts";

const Params = z.object({ id: z.string().regex(deviceIdPattern) });

const app = express();
app.disable("x-powered-by");
app.disable("etag");
app.use((request, response, next) => {
  const startedAtMs = performance.now();
  response.once("finish", () =>
    logRequest(request.method, request.route?.path ?? request.path, response.statusCode, startedAtMs),
  );
  next();
});
app.use(async (request, response, next) => {
  const caller = await checkKey(request.headers.authorization);
  if (caller === null) {
    response.sendStatus(401);
    return;
  }
  response.locals.caller = caller;
  next();
});
app.get("/api/v2/devices/:id", async (request, response) => {
  const params = Params.safeParse(request.params);
  if (!params.success) {
    response.status(400).json({ issues: params.error.issues });
    return;
  }
  const device = await readDevice(params.data.id);
  if (device === null) response.sendStatus(404);
  else response.type("json").send(device);
});
const server = app.listen(0, "127.0.0.1", () => reportReady((server.address() as AddressInfo).port));
