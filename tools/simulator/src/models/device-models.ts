import type { DeviceModel } from "../simulated-device.ts";
import { fridge } from "./fridge.ts";
import type { SimulatedKind } from "./kind.ts";
import { lamp } from "./lamp.ts";
import { meter } from "./meter.ts";
import { pump } from "./pump.ts";
import { weather } from "./weather.ts";

/** The kinds of simulated devices. */
export const simulatedKinds = { pump, fridge, meter, weather, lamp } as const satisfies Record<
  string,
  SimulatedKind
>;

export type DeviceKind = keyof typeof simulatedKinds;
export const deviceKinds = Object.keys(simulatedKinds) as [DeviceKind, ...DeviceKind[]];

/** A device of a kind, with its own state; its firmware is the newest unless another is given. */
export function modelOf(kind: DeviceKind, firmware: string = simulatedKinds[kind].firmware[0]): DeviceModel {
  return { ...simulatedKinds[kind].make(), firmware };
}
