import type { DeviceModel } from "../simulated-device.ts";

/** What the devices of a fleet did so far. */
export interface Totals {
  /** Handed to the MQTT client; some may be on their way. */
  records: number;
  calls: number;
  /** Changes of desired state taken over. */
  desired: number;
  /** Connections dropped on purpose, and messages of garbage sent. */
  drops: number;
  garbage: number;
  /** Calls answered late, wrongly or never, on purpose. */
  badAnswers: number;
}

/** Where counting begins. */
export const noTotals: Totals = { records: 0, calls: 0, desired: 0, drops: 0, garbage: 0, badAnswers: 0 };

/** A model that does the same and is counted. */
export function counted(model: DeviceModel, totals: Totals): DeviceModel {
  const functions = Object.entries(model.functions).map(([name, run]) => [
    name,
    (params: unknown) => {
      totals.calls++;
      return run(params);
    },
  ]);
  return {
    ...model,
    functions: Object.fromEntries(functions),
    telemetry: model.telemetry.map((telemetry) => ({
      ...telemetry,
      read() {
        totals.records++;
        return telemetry.read();
      },
    })),
    onDesired(desired) {
      totals.desired++;
      model.onDesired?.(desired);
    },
  };
}

/** One line for people; `faults` says whether those are told, too. */
export function totalsLine(
  totals: Totals,
  {
    connected,
    wanted,
    faults,
  }: { readonly connected: number; readonly wanted: number; readonly faults: boolean },
): string {
  const { records, calls, desired, drops, garbage, badAnswers } = totals;
  const line = `${connected} of ${wanted} connected, ${records} records, ${calls} calls, ${desired} desired changes`;
  if (!faults) return line;
  return `${line}; ${drops} connections dropped, ${garbage} garbage, ${badAnswers} calls answered badly`;
}
