import { createHash } from "node:crypto";
import { secretsInText } from "@devmesh/contracts/model/api-key";
import { keyNames } from "@devmesh/contracts/principal";
import { api, type Operation } from "@devmesh/contracts/rest/api";
import type { RouteDeclaration } from "@devmesh/contracts/rest/route";
import type { TestMesh } from "@devmesh/testkit/mesh";
import type { MqttDevice } from "@devmesh/testkit/mqtt-device";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { type RestClient, restClient } from "../../src/rest-client.ts";
import { asMaster, type EnrolledDevice, enrolDevice, registerCustomer } from "../../src/tenant.ts";

/** Every kind of key against every route: 2xx only where the specification grants it. */
const holders = [
  "master",
  "session",
  "device_key",
  "public_key",
  "customer",
  "device",
  "unknown",
  "nobody",
] as const;
type Holder = (typeof holders)[number];

/** Every kind of key against every route. */
export function keyMatrix(shared: () => TestMesh): void {
  describe("keys and routes", () => {
    let mesh: TestMesh;
    let pump: EnrolledDevice;
    let device: MqttDevice;
    let confirmLink: string;
    let clients: Record<Holder, RestClient>;
    let counter = 0;

    beforeAll(async () => {
      mesh = shared();
      pump = await enrolDevice(mesh, "matrix", {
        write: ["/state/desired/app"],
        rpc: ["ping"],
        queries: { all: { topic: "#" }, numbers: { topic: "x", pointers: ["/v"] } },
      });
      device = await pump.connect();
      await device.answerRpc(() => ({ result: true }));
      const customer = await registerCustomer(mesh, "keyholder@example.com");
      confirmLink = customer.link;
      clients = {
        master: asMaster(mesh),
        session: restClient(mesh.url, (await asMaster(mesh).post("sessions")).json.key),
        device_key: pump.asDeviceKey,
        public_key: pump.asPublicKey,
        customer: customer.asCustomer,
        device: restClient(mesh.url, pump.token),
        unknown: restClient(mesh.url, `mk_${"0".repeat(32)}`),
        nobody: restClient(mesh.url, null),
      };
    });
    afterAll(async () => {
      await device?.leave();
    });

    interface Example {
      readonly path: string;
      readonly body?: unknown;
    }

    async function created(path: string, body: object): Promise<string> {
      const answer = await clients.master.post(path, body);
      expect(answer.status).toBe(201);
      return answer.json.id;
    }

    /** Stores a call of a device, and returns the id of its execution. */
    async function waitingCall(client: RestClient, device: string): Promise<string> {
      const answer = await client.post(`${device}/rpc/ping?wait=PT1M`, {});
      expect(answer.status).toBe(202);
      return answer.json.id;
    }
    const sleepingDevice = async () => `devices/${await created("devices", {})}`;

    const board = async () => `boards/${await created("boards", { name: "matrix" })}`;
    const savedView = () => created("views", { name: `view ${++counter}`, query: "where=a" });
    // It waits, so that it has not ended when it is changed.
    const newJob = { target: { ids: ["matrix"] }, action: { kind: "rpc", func: "ping" }, expires_in: "PT1M" };

    const bytes = Buffer.from("firmware");
    const sha256 = createHash("sha256").update(bytes).digest("hex");
    const newFirmware = () => ({ name: "pump", version: `1.${++counter}`, size: bytes.length, sha256 });
    const newWebhook = { url: "http://127.0.0.1:9/", events: [] };
    const freshWebhook = async () => `webhooks/${await created("webhooks", newWebhook)}`;
    let known: Promise<string> | undefined;
    const webhook = () => {
      known ??= freshWebhook();
      return known;
    };
    const newRule = { name: "away", when: { kind: "offline", longer_than: "P1D" } };
    // Of no device: it stays, and other suites have alerts sent.
    const newSilence = { where: { labels: { all: ["nobody"] } }, until: "2100-01-01T00:00:00Z" };
    const newChannel = () => ({ kind: "mail", name: "on call", to: [`ann${++counter}@example.com`] });
    const declared = async () => `firmware/${await created("firmware", newFirmware())}`;
    const uploaded = async () => {
      const path = await declared();
      expect((await clients.master.post(`${path}/content`, bytes)).status).toBe(200);
      return path;
    };

    const app = { shadow: { state: { desired: { app: { on: true } } } } };

    /** A request that succeeds for a key that may make it; what it destroys is made for it. */
    const examples: Record<Operation, () => Example | Promise<Example>> = {
      registerCustomer: () => ({ path: `/newcustomer?email=guest${++counter}@example.com` }),
      confirmCustomer: () => ({ path: new URL(confirmLink).pathname + new URL(confirmLink).search }),
      readCustomer: () => ({ path: "customer" }),
      updateCustomer: () => ({ path: "customer", body: { meta: { n: 1 } } }),
      readOwnDevice: () => ({ path: "m/device" }),
      patchOwnDevice: () => ({ path: "m/device", body: app }),
      runNamedQuery: () => ({ path: "m/device/data/all" }),
      runNamedSeries: () => ({ path: "m/device/series/numbers" }),
      callOwnFunction: () => ({ path: "m/device/rpc/ping", body: {} }),
      readOwnExecution: async () => ({
        path: `m/device/executions/${await waitingCall(clients.public_key, "m/device")}`,
      }),
      listDevices: () => ({ path: "devices" }),
      createDevice: () => ({ path: "devices", body: { id: `new-${++counter}` } }),
      readDevice: () => ({ path: "devices/matrix" }),
      patchDevice: () => ({ path: "devices/matrix", body: app }),
      deleteDevice: async () => ({ path: `devices/${await created("devices", {})}` }),
      readDiagnostics: () => ({ path: "devices/matrix/diagnostics" }),
      summarizeDevices: () => ({ path: "device_summary" }),
      facetDevices: () => ({ path: "device_facets?where=label:x&facets=version,label,problem" }),
      listDiagnostics: () => ({ path: "diagnostics?name=login_refused&where=problem:any&since=PT1H" }),
      listUnknownDevices: () => ({ path: "unknown_devices" }),
      listViews: () => ({ path: "views" }),
      createView: () => ({ path: "views", body: { name: `view ${++counter}`, query: "where=a" } }),
      patchView: async () => ({ path: `views/${await savedView()}`, body: { query: "where=b" } }),
      deleteView: async () => ({ path: `views/${await savedView()}` }),
      listBoards: () => ({ path: "boards" }),
      createBoard: () => ({ path: "boards", body: { name: "matrix", panels: [] } }),
      readBoard: async () => ({ path: await board() }),
      patchBoard: async () => ({ path: await board(), body: { name: "wall", revision: 1 } }),
      deleteBoard: async () => ({ path: await board() }),
      readCredentials: () => ({ path: "devices/matrix/credentials" }),
      rotateToken: async () => ({ path: `devices/${await created("devices", {})}/token` }),
      rotatePublicKey: async () => ({ path: `devices/${await created("devices", {})}/public_key` }),
      callFunction: () => ({ path: "devices/matrix/rpc/ping", body: {} }),
      callFunctionWithoutParams: () => ({ path: "devices/matrix/rpc/ping" }),
      listExecutions: () => ({ path: "devices/matrix/executions" }),
      readExecution: async () => ({
        path: `executions/${await waitingCall(clients.master, "devices/matrix")}`,
      }),
      cancelExecution: async () => ({
        path: `executions/${await waitingCall(clients.master, await sleepingDevice())}`,
        body: { state: "cancelled" },
      }),
      createWebhook: () => ({ path: "webhooks", body: newWebhook }),
      listWebhooks: () => ({ path: "webhooks" }),
      readWebhook: async () => ({ path: await webhook() }),
      patchWebhook: async () => ({ path: await webhook(), body: { name: "Bill" } }),
      deleteWebhook: async () => ({ path: await freshWebhook() }),
      readWebhookSecret: async () => ({ path: `${await webhook()}/secret` }),
      rotateWebhookSecret: async () => ({ path: `${await freshWebhook()}/secret` }),
      testWebhook: async () => ({ path: `${await webhook()}/test` }),
      listDeadDeliveries: async () => ({ path: `${await webhook()}/dead` }),
      retryDeadDeliveries: async () => ({ path: `${await webhook()}/dead/retry` }),
      retryDeadDelivery: async () => ({ path: `${await webhook()}/dead/1/retry` }),
      listRules: () => ({ path: "rules" }),
      createRule: () => ({ path: "rules", body: newRule }),
      tryRule: () => ({ path: "rules/try?over=PT1H", body: newRule }),
      readRule: async () => ({ path: `rules/${await created("rules", newRule)}` }),
      changeRule: async () => ({
        path: `rules/${await created("rules", newRule)}`,
        body: { enabled: false },
      }),
      deleteRule: async () => ({ path: `rules/${await created("rules", newRule)}` }),
      listAlerts: () => ({ path: "alerts?state=firing" }),
      readAlert: () => ({ path: "alerts/none" }),
      changeAlert: () => ({ path: "alerts/none", body: { acknowledged: true } }),
      summarizeAlerts: () => ({ path: "alerts/summary" }),
      listSilences: () => ({ path: "silences" }),
      createSilence: () => ({ path: "silences", body: newSilence }),
      deleteSilence: async () => ({ path: `silences/${await created("silences", newSilence)}` }),
      listChannels: () => ({ path: "channels" }),
      createChannel: () => ({ path: "channels", body: newChannel() }),
      changeChannel: async () => ({
        path: `channels/${await created("channels", newChannel())}`,
        body: { name: "night" },
      }),
      testChannel: async () => ({ path: `channels/${await created("channels", newChannel())}/test` }),
      deleteChannel: async () => ({ path: `channels/${await created("channels", newChannel())}` }),
      createFirmware: () => ({ path: "firmware", body: newFirmware() }),
      listFirmware: () => ({ path: "firmware" }),
      readFirmware: async () => ({ path: await declared() }),
      deleteFirmware: async () => ({ path: await uploaded() }),
      uploadFirmware: async () => ({ path: `${await declared()}/content`, body: bytes }),
      readFirmwareContent: async () => ({ path: `${await uploaded()}/content` }),
      downloadFirmware: () => ({ path: `ota/ot_${"0".repeat(32)}` }),
      createJob: () => ({ path: "jobs", body: newJob }),
      listJobs: () => ({ path: "jobs" }),
      readJob: async () => ({ path: `jobs/${await created("jobs", newJob)}` }),
      changeJob: async () => ({
        path: `jobs/${await created("jobs", newJob)}`,
        body: { rollout: { per_minute: 60 } },
      }),
      listJobExecutions: async () => ({ path: `jobs/${await created("jobs", newJob)}/executions` }),
      listKeys: () => ({ path: "keys" }),
      createKey: () => ({ path: "keys", body: { device_id: "matrix" } }),
      deleteKey: async () => ({ path: `keys/${await created("keys", { device_id: "matrix" })}` }),
      listSessions: () => ({ path: "sessions" }),
      createSession: () => ({ path: "sessions", body: { name: "Firefox" } }),
      endSession: async () => ({ path: `sessions/${await created("sessions", {})}` }),
      listCustomers: () => ({ path: "customers" }),
      deleteCustomer: async () => {
        const email = `leaver${++counter}@example.com`;
        await registerCustomer(mesh, email);
        const { json } = await clients.master.get("customers");
        return {
          path: `customers/${json.find((customer: { email: string }) => customer.email === email).id}`,
        };
      },
      listDeadMail: () => ({ path: "mail/dead" }),
      readMesh: () => ({ path: "mesh" }),
      readMeshHistory: () => ({ path: "mesh/history" }),
      listMeshChanges: () => ({ path: "mesh/changes" }),
      readMqttAddress: () => ({ path: "mqtt" }),
      retryDeadMail: () => ({ path: "mail/dead/1/retry" }),
      queryRecords: () => ({ path: "data" }),
      readLatest: () => ({ path: "devices/matrix/latest" }),
      readSeries: () => ({ path: "series?device_id=matrix&topic=x" }),
      listSeries: () => ({ path: "devices/matrix/series" }),
      listOwnSeries: () => ({ path: "device/series" }),
      readOwnLatest: () => ({ path: "device/latest" }),
      readAppDevice: () => ({ path: "device" }),
      patchAppDevice: () => ({ path: "device", body: app }),
      followNotifications: () => ({ path: "notify" }),
      followOwnNotifications: () => ({ path: "m/device/notify" }),
    };

    /** A well-formed request whose subject cannot exist in this mesh: allowed callers get 404. */
    const missing: readonly Operation[] = [
      "retryDeadMail",
      "downloadFirmware",
      "retryDeadDelivery",
      "readAlert",
      "changeAlert",
    ];

    function expected(route: RouteDeclaration, operation: Operation, holder: Holder) {
      // A stream that is not asked for as one is refused, but only to who may have it.
      const answered = route.stream === true ? [406] : [200, 201, 202, 204];
      const granted = missing.includes(operation) ? [404] : answered;
      if (route.auth === null) return granted;
      if (holder === "nobody" || holder === "unknown" || holder === "device") return [401];
      return route.auth.includes(holder) ? granted : [403];
    }

    describe.each(Object.entries(api) as [Operation, RouteDeclaration][])("%s", (operation, route) => {
      test.each(holders)("asked by %s is answered as the specification grants", async (holder) => {
        const { path, body } = await examples[operation]();
        const answer = await clients[holder].send(route.method.toUpperCase(), path, body);
        expect(expected(route, operation, holder)).toContain(answer.status);
        if (answer.status === 403) {
          expect(answer.json.reason).toBe("wrong_key_kind");
          expect(answer.json.detail).toContain(
            `This route needs a ${route.auth?.map((kind) => keyNames[kind]).join(" or ")}`,
          );
        }
        // What no session gets is above all what a thief would take from a browser.
        if (holder === "session" && route.auth !== null)
          expect(JSON.stringify(answer.json ?? null)).not.toMatch(secretsInText);
        if (answer.status >= 400)
          expect(answer.headers.get("content-type")).toContain("application/problem+json");
      });
    });
  });
}
