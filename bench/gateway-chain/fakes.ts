import { devices } from "@devmesh/contracts/devices";
import { keyEvents, keys } from "@devmesh/contracts/keys";
import { connectBus } from "@devmesh/service-kit/bus";
import { createPublisher } from "@devmesh/service-kit/events";
import { createLogger } from "@devmesh/service-kit/logger";
import { serve } from "@devmesh/service-kit/serve";
import { fakeContract } from "@devmesh/testkit/fakes";
import { reportReady } from "../child.ts";
import { device, deviceId } from "./device.ts";

/** `keys` and `devices` as their contracts describe them, on the kit's own server, without a store. */
const bus = await connectBus({
  url: process.env.NATS_URL ?? "",
  name: "fakes",
  log: createLogger({ service: "fakes", level: "info" }),
});
serve(
  bus,
  keys,
  fakeContract(keys, {
    verify: async ({ key }, context) =>
      key === process.env.BENCH_KEY
        ? { key_id: "bench", principal: { kind: "master" }, expires_at: null }
        : context.fail("key_invalid"),
  }),
);
serve(
  bus,
  devices,
  fakeContract(devices, {
    readDevice: async ({ id }, context) =>
      // The contract's output is the visible device, any JSON object: the owner's type is narrower.
      id === deviceId ? { etag: '"42"', device: device as never } : context.fail("device_not_found"),
  }),
);
// Makes the stream of events that the gateway listens to.
await createPublisher(bus, keyEvents);
await bus.flush();
reportReady();
