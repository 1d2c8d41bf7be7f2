import type { AddressInfo } from "node:net";
import { connect } from "@nats-io/transport-node";
import express from "express";
import { reportReady } from "../child.ts";
import { rawSubject } from "./device.ts";

/** The peer of the gateway: plain Express and one NATS request. */
const connection = await connect({ servers: process.env.NATS_URL ?? "", noAsyncTraces: true });
const app = express();
app.get("/api/v2/devices/:id", async (request, response) => {
  const reply = await connection.request(rawSubject, request.params.id, { timeout: 5_000 });
  response.type("json").send(Buffer.from(reply.data));
});
const server = app.listen(0, "127.0.0.1", () => {
  const { port } = server.address() as AddressInfo;
  reportReady(port);
});
