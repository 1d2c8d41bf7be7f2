import { readFileSync } from "node:fs";
import { join } from "node:path";
import { eventually } from "@devmesh/testkit/eventually";
import type { TestMesh } from "@devmesh/testkit/mesh";
import type { CollectedSpan, TraceCollector } from "@devmesh/testkit/trace-collector";
import { expect, test } from "@jest/globals";
import { enrolDevice } from "../../src/tenant.ts";

const traceId = "4bf92f3577b34da6a3ce929d0e0e4736";
const callerSpan = "00f067aa0ba902b7";

/** Spans of a mesh that exports them to `collecting` and trusts the caller as a proxy. */
export function traces(shared: () => TestMesh, collecting: () => TraceCollector): void {
  test("a device call over HTTP is one trace through all services", async () => {
    const [mesh, collector] = [shared(), collecting()];
    const lamp = await enrolDevice(mesh, "traced-lamp");
    const device = await lamp.connect();
    await device.answerRpc(({ params }) => ({ result: params ?? null }));
    const answer = await fetch(`${mesh.url}/api/v2/devices/traced-lamp/rpc/Echo?timeout=20000`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${mesh.masterKey}`,
        "content-type": "application/json",
        traceparent: `00-${traceId}-${callerSpan}-01`,
      },
      body: JSON.stringify({ at: "a secret place" }),
    });
    expect(await answer.json()).toEqual({ at: "a secret place" });
    await device.leave();

    const ownSpans = () => collector.spans.filter((span) => span.traceId === traceId);
    const lineOf = ({ service, kind, name }: CollectedSpan) =>
      `${service.replace("devmesh-", "")} ${kind} ${name}`;
    /** Each span of the trace with the spans above it. */
    const pathsBelow = (parentId: string): string[] =>
      ownSpans()
        .filter((span) => span.parentId === parentId)
        .flatMap((span) => {
          const line = lineOf(span);
          return [line, ...pathsBelow(span.spanId).map((path) => `${line} > ${path}`)];
        });
    const request = "gateway server POST /api/v2/devices/:id/rpc/:func";
    const call = `${request} > gateway client rpc-bridge/call > rpc-bridge server rpc-bridge/call`;
    const presence = "rpc-bridge client devices/readPresence > devices server devices/readPresence";
    await eventually(() => {
      expect(pathsBelow(callerSpan)).toEqual(
        expect.arrayContaining([
          request,
          call,
          `${call} > ${presence} > devices client has devices`,
          `${call} > rpc-bridge client device call`,
          `${call} > rpc-bridge producer send rpc-bridge.rpc_in`,
        ]),
      );
      return true;
    });
    expect(ownSpans().find(({ name }) => name === "device call")?.attributes).toEqual({
      "rpc.system.name": "jsonrpc",
      "rpc.method": "Echo",
      "devmesh.device.id": "traced-lamp",
    });

    const [first] = ownSpans().filter(({ parentId }) => parentId === callerSpan);
    const log = readFileSync(join(mesh.dataDir, "logs/gateway.log"), "utf8").split("\n");
    const lines = log
      .filter((line) => line.includes(traceId) && line.includes('"level":"info"'))
      .map((line) => JSON.parse(line));
    expect(lines).toMatchObject([{ msg: "request", trace_id: traceId, span_id: first?.spanId }]);
    for (const secret of [mesh.masterKey, lamp.token, "a secret place", "timeout="])
      expect(collector.received()).not.toContain(secret);
  }, 120_000);
}
