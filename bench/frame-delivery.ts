/**
 * Whether a device ever receives a frame that the broker reported as delivered to nobody (ADR 32): over three
 * nats-servers, with devices that subscribe up to 5 s after connecting. `node bench/frame-delivery.ts [minutes]`
 */
import { tryFrameDelivery } from "@devmesh/testkit/frame-delivery-trial";
import { reportFigures } from "./measure.ts";

const minutes = Number(process.argv[2] ?? 5);
const trial = { devices: 100, forMs: minutes * 60_000, longestPauseMs: 5_000, kills: 3 * minutes };
const { sent, received, reported, unknown, reportedAndReceived, repeated } = await tryFrameDelivery(trial);
const figure = (name: string, value: number) => ({ name, ours: { name: "broker", values: [value] } });
reportFigures([
  figure("frames sent", sent),
  figure("received", received),
  figure("reported as delivered to nobody", reported),
  figure("neither", unknown),
  { ...figure("reported, and received", reportedAndReceived.length), goal: { value: 0 } },
  { ...figure("received twice", repeated.length), goal: { value: 0 } },
]);
