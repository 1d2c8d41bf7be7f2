import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { serviceNames } from "@devmesh/contracts/mesh";
import { MeshState } from "@devmesh/contracts/model/mesh-state";
import { release } from "@devmesh/contracts/release";
import { eventually } from "@devmesh/testkit/eventually";
import type { TestMesh } from "@devmesh/testkit/mesh";
import { connectNats } from "@devmesh/testkit/nats-connection";
import { describe, expect, test } from "@jest/globals";

/** What an operator sees of the mesh. It comes first: no request has failed yet. */
export function discovery(shared: () => TestMesh): void {
  describe("discovery", () => {
    test("the broker's user operator sees every service by the NATS service protocol, and can do nothing else; GET /mesh shows the same", async () => {
      const mesh = shared();
      const { passwords } = JSON.parse(await readFile(join(mesh.dataDir, "installation.json"), "utf8"));
      await using operator = await connectNats({
        port: mesh.ports.nats,
        user: "operator.mesh",
        password: passwords.operator,
      });
      const answers: { name: string; type: string }[] = [];
      await operator.subscribe("_INBOX.discovery", ({ payload }) => answers.push(JSON.parse(payload)));
      operator.publish("$SRV.PING", "", "_INBOX.discovery");
      await eventually(() => answers.length >= serviceNames.length);
      expect(answers.map(({ name }) => name).sort()).toEqual(serviceNames.toSorted());
      expect(new Set(answers.map(({ type }) => type))).toEqual(new Set(["io.nats.micro.v1.ping_response"]));
      const { status, json } = await mesh.http("/api/v2/mesh");
      expect(status).toBe(200);
      const { services } = MeshState.parse(json);
      const releases = services.flatMap(({ replicas }) => replicas.map((replica) => replica.release));
      expect(new Set(releases)).toEqual(new Set([release]));
      expect(services.map(({ name, replicas }) => `${replicas.length} ${name}`)).toEqual(
        serviceNames.toSorted().map((name) => `1 ${name}`),
      );
      const gateway = services.find(({ name }) => name === "gateway")?.replicas[0]?.endpoints;
      expect(gateway).toMatchObject([{ name: "http", errors: 0 }]);
      // The canary of `data` may be under way.
      await eventually(async () => {
        const { queues } = MeshState.parse((await mesh.http("/api/v2/mesh")).json);
        expect(queues).toEqual({ data: 0, rpc_bridge: 0, jobs: 0, mail: 0, dead_mail: 0, webhooks: 0 });
        return true;
      });
      await expect(operator.tryPublish("mesh.keys.v1.listKeys", "{}")).rejects.toThrow(
        /permissions violation/i,
      );
      await expect(operator.subscribe("_INBOX_keys.>", () => {})).rejects.toThrow(/permissions violation/i);
    });
  });
}
