import { keyEvents } from "@devmesh/contracts/keys";
import { systemClock } from "@devmesh/service-kit/clock";
import { natsConnection } from "@devmesh/service-kit/connection/nats-connection";
import { createPublisher } from "@devmesh/service-kit/events/publisher";
import { createCallContext } from "@devmesh/service-kit/rpc/context";
import { eventsNamed, eventsStream } from "@devmesh/service-kit/subjects";
import { eventually } from "@devmesh/testkit/eventually";
import { startBuses } from "@devmesh/testkit/sample-mesh/buses";
import { expect, test } from "@jest/globals";
import { createAccountEvents } from "../src/account-events.ts";

test("nobody waits until the stream acknowledges what only shows a change", async () => {
  await using buses = await startBuses({ jetstream: true });
  const bus = await buses.connect("keys");
  const events = createAccountEvents(await createPublisher(bus, keyEvents), systemClock);
  // Received, and acknowledged at the end.
  await bus[natsConnection].request(`$JS.API.STREAM.DELETE.${eventsStream}`);
  const stored = JSON.stringify({ stream: eventsStream, seq: 1 });
  const received: (() => void)[] = [];
  for (const name of ["key_changed", "customer_changed"])
    bus[natsConnection].subscribe(eventsNamed("keys", name, {}), {
      callback: (_error, msg) => void received.push(() => msg.respond(stored)),
    });
  // Each acknowledgement is awaited for two seconds.
  using call = createCallContext({ timeoutMs: 5_000 });
  for (const id of ["a", "b", "c"]) await events.keyChanged(id, "created", call);
  await events.customerChanged("d", "invited", call);
  expect(call.signal.aborted).toBe(false);
  await eventually(() => received.length >= 4);
  expect(received).toHaveLength(4);
  for (const acknowledge of received) acknowledge();
  await bus.flush();
});
