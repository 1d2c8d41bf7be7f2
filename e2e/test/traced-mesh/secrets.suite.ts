import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { eventually } from "@devmesh/testkit/eventually";
import type { TestMesh } from "@devmesh/testkit/mesh";
import { expect, test } from "@jest/globals";
import { contentOf, filesBelow } from "../../src/files.ts";
import { asAnyone, asMaster, enrolDevice, registerCustomer } from "../../src/tenant.ts";

/** What is stored and logged at the level `trace`. */
export function secrets(shared: () => TestMesh): void {
  test("no secret is in a log, a store, the broker's files or a metric; where one must be, only its owner can read", async () => {
    const mesh = shared();
    const master = asMaster(mesh);
    // The path of a chat's URL is its password.
    const chat = "T0B0chatPassword4fT9wXq2LmZ8";
    const hook = { url: `http://127.0.0.1:1/services/${chat}`, events: ["created", "keys"] };
    const webhook = (await master.post("webhooks", hook)).json;
    const replaced = (await master.post(`webhooks/${webhook.id}/secret`)).json.secret;
    const device = await enrolDevice(mesh, "vault");
    const customer = await registerCustomer(mesh, "vault@example.com");
    const rotated = (await master.post("devices/vault/token")).json.token;
    const connection = await device.connect().catch(() => null);
    await connection?.leave();
    await asAnyone(mesh).get(`devices?access_token=${mesh.masterKey}`);
    await asAnyone(mesh).get(`nowhere?access_token=${mesh.masterKey}`);
    await asAnyone(mesh).get(`data?limit=x&access_token=${device.deviceKey}`);
    await device.asPublicKey.get("m/device");
    await customer.asCustomer.post("customer", { meta: { n: 1 } });
    await fetch(customer.link);
    await master.delete("devices/vault");
    await eventually(async () => (await master.get("devices/vault")).status === 404);
    await eventually(
      async () => (await master.get(`webhooks/${webhook.id}`)).json.state.last_failure !== null,
    );

    const confirmation = new URL(customer.link).searchParams.get("token") ?? "";
    const secrets = [
      mesh.masterKey,
      device.token,
      rotated,
      device.deviceKey,
      device.publicKey,
      customer.token,
      webhook.secret,
      replaced,
      confirmation,
    ];
    expect(secrets.every((secret) => secret.length > 20)).toBe(true);
    const meant = [join(mesh.dataDir, "master-key"), join(mesh.dataDir, "outbox")];
    for (const file of await filesBelow(mesh.dataDir)) {
      const content = await contentOf(file);
      // The broker drops the files of messages that nobody needs any more.
      if (content === null) continue;
      const found = secrets.filter((secret) => content.includes(secret));
      if (!file.startsWith(join(mesh.dataDir, "webhooks.db")))
        expect([file, content.includes(chat)]).toEqual([file, false]);
      if (meant.some((path) => file.startsWith(path))) {
        expect([file, (await stat(file)).mode & 0o077]).toEqual([file, 0]);
      } else {
        expect([file, found.length]).toEqual([file, 0]);
      }
    }
    const { services } = JSON.parse(await readFile(join(mesh.dataDir, "mesh.json"), "utf8"));
    for (const { ops } of Object.values<{ ops: string }>(services)) {
      const metrics = await (await fetch(`${ops}/metrics`)).text();
      expect([...secrets, chat].filter((secret) => metrics.includes(secret))).toEqual([]);
    }
    await master.delete(`webhooks/${webhook.id}`);
  });
}
