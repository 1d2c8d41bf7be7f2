import type { DeviceModel } from "../simulated-device.ts";

/** A kind of simulated devices. */
export interface SimulatedKind {
  /** Versions of its firmware, the newest first. */
  readonly firmware: readonly [string, ...string[]];
  /** Where such devices are, as people name them. */
  readonly names: readonly [string, ...string[]];
  /** Units for `tags.units`, by topic and pointer of a value, such as `pump#/flow`. */
  readonly units: Readonly<Record<string, string>>;
  /** Makes a device with its own state. */
  readonly make: () => Omit<DeviceModel, "firmware">;
}
