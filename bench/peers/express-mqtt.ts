/**
 * Calls of devices by Express 5 and MQTT.js directly: HTTP, a publication, the reply of the device, HTTP. Keys are in a
 * store.
 */

import { Socket } from "node:net";
import express from "express";
import { connectAsync } from "mqtt";
import { z } from "zod";
import { deviceIdPattern } from "./contract.ts";
import { environment } from "./environment.ts";
import { createApp, listen } from "./express-app.ts";
import { createKeyCheck } from "./key-check.ts";
import { openPeerStore } from "./store.ts";

const timeoutMs = 10_000;
const Params = z.object({
  id: z.string().regex(deviceIdPattern),
  method: z.string().regex(/^[\w.]{1,128}$/),
});
const Reply = z.object({ id: z.number(), result: z.unknown() });

const store = openPeerStore(environment.storePath);
const checkKey = createKeyCheck(async (digest) => store.readKey(digest));
const mqtt = await connectAsync(environment.mqttUrl, {
  protocolVersion: 4,
  clientId: "_bench-express",
  username: environment.mqttUser,
  password: environment.mqttPassword,
});
// Nagle's algorithm would delay each publication.
if (mqtt.stream instanceof Socket) mqtt.stream.setNoDelay(true);

const waiting = new Map<number, (result: unknown) => void>();
let lastId = 0;
mqtt.on("message", (_topic, payload) => {
  const reply = Reply.safeParse(JSON.parse(payload.toString("utf8")));
  if (reply.success) waiting.get(reply.data.id)?.(reply.data.result);
});
await mqtt.subscribeAsync("+/r/bench-express/rpc");

/** The device's result; rejects when it does not answer in time. */
function call(deviceId: string, method: string, params: unknown): Promise<unknown> {
  const id = ++lastId;
  return new Promise((resolve, reject) => {
    const end = () => {
      clearTimeout(timer);
      waiting.delete(id);
    };
    const timer = setTimeout(() => {
      end();
      reject(new Error("the device did not answer"));
    }, timeoutMs);
    waiting.set(id, (result) => {
      end();
      resolve(result);
    });
    mqtt.publish(
      `${deviceId}/rpc`,
      JSON.stringify({ id, src: `${deviceId}/r/bench-express`, method, params }),
    );
  });
}

const app = createApp(checkKey);
app.post("/api/v2/devices/:id/rpc/:method", express.json(), async (request, response) => {
  const params = Params.safeParse(request.params);
  if (!params.success) {
    response.status(400).json({ issues: params.error.issues });
    return;
  }
  const { id, method } = params.data;
  try {
    response.json(await call(id, method, request.body));
  } catch {
    response.sendStatus(504);
  }
});
listen(app);
