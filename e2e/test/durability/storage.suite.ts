import { eventually } from "@devmesh/testkit/eventually";
import type { TestMesh } from "@devmesh/testkit/mesh";
import { openWebSocket } from "@devmesh/testkit/notification-client";
import { expect, test } from "@jest/globals";
import { startSender } from "../../src/acknowledged-load.ts";
import { asMaster, enrolDevice } from "../../src/tenant.ts";

/** What the broker keeps of devices' messages. */
export const streamBytes = 32 * 1024 * 1024;

const isObject = (data: unknown): data is Record<string, unknown> =>
  typeof data === "object" && data !== null;

/** A broker of {@link streamBytes} that fills. Its devices have no rate, which would cut them off before. */
export function storageFills(shared: () => TestMesh): void {
  test("a device that fills what waits for services is cut off before the broker is full, and another loses nothing", async () => {
    const block = "x".repeat(64 * 1024);
    const mesh = shared();
    const attacker = await enrolDevice(mesh, "filler");
    const meter = await enrolDevice(mesh, "beside");
    const notifications = await openWebSocket(mesh.url, "/api/v2/notify", { key: mesh.masterKey });
    await using sender = startSender(meter, [mesh.mqttUrl]);
    await eventually(() => sender.acknowledged.size > 0);

    await mesh.kill("data", "SIGSTOP");
    const connections = await Promise.all([1, 2, 3].map((nth) => attacker.connect(`filler:${nth}`)));
    // Two thirds of the room in all, so that it is never full.
    const ended = connections.map(async (device) => {
      const closed = device.closed();
      for (let sent = 0; sent < (streamBytes * 2) / 9 && device.client.connected; sent += block.length)
        await Promise.race([device.publish("db/filler/blob", block, 1).catch(() => undefined), closed]);
      await closed;
    });
    await Promise.all(ended);
    await eventually(() =>
      notifications.frames.some(
        ({ name, id, data }) =>
          name === "throttled" && id === "filler" && isObject(data) && data.why === "storage",
      ),
    );
    const reached = sender.acknowledged.size;
    await eventually(() => sender.acknowledged.size > reached + 100);
    await sender.stop();
    expect(sender.logins).toBe(1);

    await mesh.kill("data", "SIGCONT");
    await eventually(async () => {
      const { json } = await asMaster(mesh).get("data?device_id=beside&limit=5000");
      const stored: string[] = json.map(({ message }: { message: string }) => message);
      return (
        stored.length === sender.acknowledged.size && stored.every((n) => sender.acknowledged.has(Number(n)))
      );
    });
    notifications.leave();
  }, 180_000);
}
