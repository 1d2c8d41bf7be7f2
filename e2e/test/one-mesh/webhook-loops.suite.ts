import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import type { CloudEvent } from "@devmesh/contracts/model/cloud-event";
import { eventually } from "@devmesh/testkit/eventually";
import type { TestMesh } from "@devmesh/testkit/mesh";
import { beforeAll, describe, expect, test } from "@jest/globals";
import type { RestClient } from "../../src/rest-client.ts";
import { asMaster, enrolDevice } from "../../src/tenant.ts";

/** Events of frames that a call can lead to. */
const events = [
  "created",
  "updated",
  "deleted",
  "execution",
  "job",
  "alert",
  "keys",
  "customers",
  "webhooks",
];

/** A receiver that calls the API leads to no events for webhooks. */
export function webhookLoops(shared: () => TestMesh): void {
  describe("a receiver of webhooks", () => {
    let mesh: TestMesh;
    let master: RestClient;
    beforeAll(() => {
      mesh = shared();
      master = asMaster(mesh);
    });

    /** Calls the API as a receiver that passes on the header of a request. */
    async function callBack(method: "GET" | "POST" | "DELETE", path: string, body?: unknown) {
      const answer = await fetch(`${mesh.url}${path.startsWith("/") ? path : `/api/v2/${path}`}`, {
        method,
        headers: {
          authorization: `Bearer ${mesh.masterKey}`,
          "webhook-id": "mh2k9x1c-1",
          ...(body !== undefined && { "content-type": "application/json" }),
        },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
      const read = await answer.text();
      if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${read}`);
      return read.startsWith("{") ? JSON.parse(read) : null;
    }

    /** Receives events, and does something with each. */
    async function startReceiver(onEvent: (event: CloudEvent) => Promise<unknown> = async () => undefined) {
      const received: CloudEvent[] = [];
      const server = createServer(async (request, response) => {
        const event = JSON.parse(await text(request));
        received.push(event);
        await onEvent(event);
        response.writeHead(204).end();
      });
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
      return {
        url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
        seen: () => received.map(({ type, subject }) => `${type.slice("devmesh.".length)} ${subject}`),
        async [Symbol.asyncDispose]() {
          server.closeAllConnections();
          await new Promise((resolve) => server.close(resolve));
        },
      };
    }
    const nothingWaits = (id: string) =>
      eventually(async () => (await master.get(`webhooks/${id}`)).json.state.waiting === 0);
    const ended = (path: string) =>
      eventually(async () => (await master.get(path)).json.ended_at !== null, { withinMs: 60_000 });

    test("that calls the API with the `webhook-id` of a request makes no event for webhooks, then or later", async () => {
      const enrolled = await enrolDevice(mesh, "loop-device");
      await using device = await enrolled.connect();
      await device.answerRpc(() => ({ result: {} }));
      await eventually(async () => (await master.get("devices/loop-device")).json.online);
      await master.post("devices/loop-device", { shadow: { tags: { labels: ["loop"] } } });
      const when = { kind: "shadow", pointer: "/state/desired/hot", is: "==", than: true };
      const rule = {
        name: "Hot",
        when,
        where: { labels: { all: ["loop"] } },
        for: "PT0S",
        severity: "info",
        notify: [],
      };
      const created = await master.post("rules", rule);
      expect(created).toMatchObject({ status: 201 });
      await using receiver = await startReceiver();
      const hook = await callBack("POST", "webhooks", {
        url: receiver.url,
        events: [...events, "rpc.in.*"],
      });
      // The alert is an event of the mesh itself, which its acknowledgement is not.
      const alerts = () => receiver.seen().filter((one) => one.startsWith("alert"));
      await callBack("POST", "devices/loop-device", { shadow: { state: { desired: { hot: true } } } });
      await eventually(() => alerts().length === 1, { withinMs: 60_000 });
      const [alert] = (await master.get("alerts?device_id=loop-device")).json;
      await callBack("POST", `alerts/${alert.id}`, { acknowledged: true });

      await callBack("POST", "devices", { id: "loop-made" });
      await callBack("POST", "devices/loop-made", { name: "Loop" });
      await callBack("DELETE", "devices/loop-made");
      await callBack("POST", "devices/loop-device/rpc/Echo");
      const waiting = await callBack("POST", "devices/loop-device/rpc/Echo?wait=PT1H");
      await ended(`executions/${waiting.id}`);
      const target = { ids: ["loop-device"] };
      for (const action of [
        { kind: "rpc", func: "Echo" },
        { kind: "shadow", patch: { state: { desired: { n: 1 } } }, wait_for_report: false },
      ])
        await ended(`jobs/${(await callBack("POST", "jobs", { target, action })).id}`);
      const key = await callBack("POST", "keys", { device_id: "loop-device" });
      await callBack("DELETE", `keys/${key.id}`);
      await callBack("GET", "/newcustomer?email=loop%40example.com");
      const other = await callBack("POST", "webhooks", { url: receiver.url, events: [] });
      await callBack("POST", `webhooks/${other.id}`, { name: "Other" });
      await callBack("DELETE", `webhooks/${other.id}`);

      await master.post("devices", { id: "loop-end" });
      await eventually(() => receiver.seen().includes("created loop-end"));
      await nothingWaits(hook.id);
      expect(receiver.seen()).toEqual(["alert loop-device", "created loop-end"]);
      await master.delete(`rules/${created.json.id}`);
      await master.delete(`webhooks/${hook.id}`);
    }, 180_000);

    test("that answers each event by a call ends after one of them", async () => {
      const enrolled = await enrolDevice(mesh, "loop-echo");
      await using device = await enrolled.connect();
      let calls = 0;
      await device.answerRpc(() => {
        calls++;
        return { result: {} };
      });
      await eventually(async () => (await master.get("devices/loop-echo")).json.online);
      await using receiver = await startReceiver(() =>
        callBack("POST", "devices/loop-echo/rpc/Echo?wait=PT1H"),
      );
      const asked = { url: receiver.url, events: ["rpc.in.Echo", "execution"], devices: ["loop-echo"] };
      const { id } = (await master.post("webhooks", asked)).json;
      expect((await master.post("devices/loop-echo/rpc/Echo")).status).toBe(200);
      await eventually(() => receiver.seen().length > 0);
      // The call of the receiver, and one more, whose events say that those of the former would be here.
      await eventually(() => calls === 2);
      const [execution] = (await master.get("devices/loop-echo/executions")).json;
      await ended(`executions/${execution.id}`);
      await nothingWaits(id);
      expect([receiver.seen(), calls]).toEqual([["rpc.in.Echo loop-echo"], 2]);
      await master.delete(`webhooks/${id}`);
    }, 120_000);

    test("is never the mesh itself", async () => {
      const own = new URL(mesh.url);
      for (const host of [own.host, `localhost:${own.port}`, `[::ffff:127.0.0.1]:${own.port}`]) {
        const url = `http://${host}/api/v2/devices/loop-device/rpc/Echo`;
        const refused = await master.post("webhooks", { url, events: ["rpc.in.*"] });
        expect([refused.status, refused.json]).toMatchObject([
          400,
          {
            reason: "url_refused",
            errors: [{ pointer: "/url", detail: expect.stringMatching(/of the mesh itself$/) }],
          },
        ]);
      }
    });
  });
}
