import type { AddressInfo } from "node:net";
import express, { type Express } from "express";
import { reportReady } from "../child.ts";
import { logRequest } from "./access-log.ts";
import type { createKeyCheck } from "./key-check.ts";

/** What the Express peers share: an access log, and 401 without a valid key. */
export function createApp(checkKey: ReturnType<typeof createKeyCheck>): Express {
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
  return app;
}

/** Listens on a free port, and reports it. */
export function listen(app: Express): void {
  const server = app.listen(0, "127.0.0.1", () => reportReady((server.address() as AddressInfo).port));
}
