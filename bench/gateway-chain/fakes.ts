import type { ContractDeclaration } from "@devmesh/contracts/contract";
import { devices } from "@devmesh/contracts/devices";
import { keyEvents, keys } from "@devmesh/contracts/keys";
import { connectBus } from "@devmesh/service-kit/bus";
import { createPublisher } from "@devmesh/service-kit/events";
import type { Implementation } from "@devmesh/service-kit/implementation";
import { createLogger } from "@devmesh/service-kit/logger";
import { serve } from "@devmesh/service-kit/serve";
import { reportReady } from "../child.ts";
import { device, deviceId } from "./device.ts";

/** `keys` and `devices` as their contracts describe them, on the kit's own server, without a store. */
const bus = await connectBus({
  url: process.env.NATS_URL ?? "",
  name: "stand-ins",
  log: createLogger({ service: "stand-ins", level: "info" }),
});
serve(
  bus,
  keys,
  standIn(keys, {
    verify: async ({ key }, context) =>
      key === process.env.BENCH_KEY
        ? { key_id: "bench", principal: { kind: "master" }, expires_at: null }
        : context.fail("key_invalid"),
  }),
);
serve(
  bus,
  devices,
  standIn(devices, {
    readDevice: async ({ id }, context) =>
      // The contract's output is the visible device, any JSON object: the owner's type is narrower.
      id === deviceId ? { etag: '"42"', device: device as never } : context.fail("device_not_found"),
  }),
);
// Makes the stream of events that the gateway listens to.
await createPublisher(bus, keyEvents);
await bus.flush();
reportReady();

/** Fills up what the benchmark does not call. */
function standIn<C extends ContractDeclaration>(
  contract: C,
  methods: Partial<Implementation<C>>,
): Implementation<C> {
  const unused = () => Promise.reject(new Error("the benchmark does not call this"));
  const all = Object.keys(contract.methods).map((method) => [method, unused]);
  return { ...Object.fromEntries(all), ...methods } as Implementation<C>;
}
