import type { PulledMessage, Puller } from "@devmesh/service-kit/connection/pull";
import { eventually } from "@devmesh/testkit/eventually";
import { expect, test } from "@jest/globals";
import { openWebhooks, type WebhooksFixture } from "./webhooks-fixture.ts";

const offline = (mesh: WebhooksFixture, id: string) =>
  mesh.deviceEvents.offline({ id, timestamp: new Date().toISOString() });

/** Takes the next message of a consumer, and acknowledges it. */
async function take(puller: Puller): Promise<PulledMessage | undefined> {
  const request = { batch: 1, expiresMs: 5_000, untilAny: true };
  const { messages } = await puller.pull(request, AbortSignal.timeout(30_000));
  for (const message of messages) message.acknowledge();
  return messages[0];
}

async function consumerOf({ outbox }: WebhooksFixture): Promise<Puller> {
  await outbox.ensure();
  const events = [{ service: "devices", event: "offline" }];
  await outbox.put({ id: "wh_1", run: 1, revision: 1, events }, null);
  return outbox.puller("wh_1");
}

test("an event that is stored before the stream begins to source is kept, also when a message came after it", async () => {
  await using mesh = await openWebhooks();
  const puller = await consumerOf(mesh);
  // The broker begins to source after 100 to 200 ms.
  await offline(mesh, "pump");
  await mesh.outbox.publish("wh_1", "{}", "one");
  const taken = [await take(puller), await take(puller)];
  expect(taken.map((message) => message?.subject).sort()).toEqual([
    "event.devices.offline.pump",
    "queue.webhooks.wh_1",
  ]);
  puller.close();
});

test("after a kill of the broker what was delivered two rounds ago is not sourced again", async () => {
  await using mesh = await openWebhooks();
  const puller = await consumerOf(mesh);
  for (const id of ["one", "two"]) await offline(mesh, id);
  const before = [await take(puller), await take(puller)];
  expect(before.map((message) => message?.sequence)).toEqual([1, 2]);
  for (const _ of ["seen", "stored"]) await mesh.outbox.ensure();
  await mesh.broker.kill();
  await mesh.broker.restart();
  await eventually(async () => (await offline(mesh, "three")) === "ok");
  const after: PulledMessage[] = [];
  await eventually(async () => {
    const message = await take(puller);
    if (message !== undefined) after.push(message);
    return message?.subject === "event.devices.offline.three";
  });
  // The broker may have lost an acknowledgement, and deliver the same message again.
  expect(after.filter(({ sequence }) => sequence > 2)).toHaveLength(1);
  puller.close();
});
