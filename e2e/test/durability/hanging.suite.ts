import { type ServiceName, serviceNames } from "@devmesh/contracts/mesh";
import { eventually } from "@devmesh/testkit/eventually";
import type { TestMesh } from "@devmesh/testkit/mesh";
import { beforeAll, describe, expect, test } from "@jest/globals";
import { asMaster, type EnrolledDevice, enrolDevice } from "../../src/tenant.ts";

/** Less than the deadline of these requests, and more than the 2.5 s that it takes on a quiet machine. */
const soonMs = 9_000;

/** Services of a mesh hang, one after the other. */
export function servicesHang(shared: () => TestMesh): void {
  describe("a service that hangs", () => {
    let mesh: TestMesh;
    let lamp: EnrolledDevice;
    let master: ReturnType<typeof asMaster>;

    beforeAll(async () => {
      mesh = shared();
      master = asMaster(mesh);
      lamp = await enrolDevice(mesh, "lamp");
      const device = await lamp.connect();
      await device.publish("db/lamp/temp", "21.5", 1);
      await eventually(async () => (await master.get("devices/lamp/latest")).json?.length === 1);
      // The gateway has seen each replica.
      expect((await master.get("mesh")).json.hanging).toEqual([]);
    });

    async function whileHanging(service: ServiceName, work: () => Promise<void>): Promise<void> {
      await mesh.kill(service, "SIGSTOP");
      try {
        await work();
      } finally {
        await mesh.kill(service, "SIGCONT");
      }
      await eventually(async () => (await master.get("mesh")).json.hanging.length === 0);
    }

    /** A reading of the mesh after the service was stopped: one is shared for a second. */
    const stateWithout = (service: ServiceName) =>
      eventually(async () => {
        const { json } = await master.get("mesh");
        return json.hanging.includes(service) && json;
      });

    const answersSoon = async <T>(work: () => Promise<T>): Promise<T> => {
      const begunAt = performance.now();
      const answer = await work();
      expect(performance.now() - begunAt).toBeLessThan(soonMs);
      return answer;
    };

    test.each<[ServiceName, string]>([
      ["data", "devices/lamp/latest"],
      ["data", "data?device_id=lamp"],
      ["devices", "devices/lamp"],
      ["devices", "devices?limit=10"],
      // `devices` asks `keys`.
      ["keys", "devices/lamp/credentials"],
      ["rpc-bridge", "devices/lamp/rpc/sum?timeout=60000"],
    ])("%s is named by GET /%s before its deadline, and by GET /mesh", async (service, path) => {
      await whileHanging(service, async () => {
        const [refused, state] = await Promise.all([
          answersSoon(() => master.get(path)),
          answersSoon(() => stateWithout(service)),
        ]);
        expect([refused.status, refused.json]).toMatchObject([504, { reason: "deadline_exceeded", service }]);
        expect(refused.json.detail).toContain(`\`${service}\``);
        expect(state.hanging).toEqual([service]);
        const names = state.services.map(({ name }: { name: string }) => name);
        expect(names).not.toContain(service);
        expect(names).toHaveLength(serviceNames.length - 1);
      });
    });

    test("takes away neither the figures of the others nor what they answer", async () => {
      await whileHanging("data", async () => {
        expect((await answersSoon(() => master.get("devices/lamp"))).status).toBe(200);
        const { services, queues, fleet, mail_delivery } = await stateWithout("data");
        const figures = Object.assign(
          {},
          ...services.flatMap(({ replicas }: { replicas: { figures: object }[] }) =>
            replicas.map((replica) => replica.figures),
          ),
        );
        expect(figures).toMatchObject({
          devices_online: expect.any(Number),
          logins: expect.any(Number),
          messages_handled: expect.any(Number),
          mails_sent: expect.any(Number),
        });
        expect(queues).toMatchObject({
          data: null,
          rpc_bridge: expect.any(Number),
          mail: expect.any(Number),
        });
        expect(fleet.devices).toBeGreaterThan(0);
        expect(mail_delivery).toBeDefined();
      });
    });
  });
}
