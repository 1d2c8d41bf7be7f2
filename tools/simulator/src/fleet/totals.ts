import type { DeviceModel } from "../simulated-device.ts";

/** What the devices of a fleet have done. */
export interface Totals {
  /** Acknowledged by the broker. */
  records: number;
  calls: number;
  /** Adopted changes of desired state. */
  desired: number;
  /** Connections dropped, and messages of garbage sent, on purpose. */
  drops: number;
  garbage: number;
  /** Calls answered late, wrongly or never, on purpose. */
  badAnswers: number;
}

export const noTotals: Totals = { records: 0, calls: 0, desired: 0, drops: 0, garbage: 0, badAnswers: 0 };

/** A model whose work is counted in `totals`. */
export function counted(model: DeviceModel, totals: Totals): DeviceModel {
  return {
    ...model,
    onCall() {
      totals.calls++;
      model.onCall?.();
    },
    onRecord() {
      totals.records++;
      model.onRecord?.();
    },
    onDesired(desired) {
      totals.desired++;
      model.onDesired?.(desired);
    },
  };
}

/** One line for the user, with `faults` or without, and with refused logins where there are some. */
export function totalsLine(
  totals: Totals,
  {
    connected,
    wanted,
    faults,
    refusals,
  }: {
    readonly connected: number;
    readonly wanted: number;
    readonly faults: boolean;
    /** Numbers by reason. */
    readonly refusals: ReadonlyMap<string, number>;
  },
): string {
  const { records, calls, desired, drops, garbage, badAnswers } = totals;
  const parts = [
    `${connected} of ${wanted} connected, ${records} records, ${calls} calls, ${desired} desired changes`,
  ];
  if (faults)
    parts.push(`${drops} connections dropped, ${garbage} garbage, ${badAnswers} calls answered badly`);
  if (refusals.size > 0)
    parts.push(`refused: ${[...refusals].map(([why, count]) => `${count} ${why}`).join(", ")}`);
  return parts.join("; ");
}
