import { z } from "zod";
import { type DeviceModel, FunctionError } from "./simulated-device.ts";

/** The kinds of simulated devices. */
export const deviceKinds = ["lamp", "pump", "weather"] as const;
export type DeviceKind = (typeof deviceKinds)[number];

const Numbers = z.union([z.array(z.number()), z.record(z.string(), z.number())]);
const LedParams = z.object({ on: z.boolean() });
const PumpParams = z
  .object({ seconds: z.number().positive().max(3_600).default(10) })
  .default({ seconds: 10 });

/** `sum` of an array's numbers, or of an object's members. */
function sum(params: unknown): number {
  const numbers = checked(Numbers, params);
  return Object.values(numbers).reduce((total, number) => total + number, 0);
}

/** Devices to try the API with, by kind; each call makes one with its own state. */
export const deviceModels: {
  readonly [K in DeviceKind]: () => DeviceModel;
} = {
  lamp: () => {
    const state = { on: false };
    return {
      app: "lamp",
      firmware: "1.4.2",
      reported: { app: { on: false, brightness: 50 } },
      functions: {
        "Led.Set": (params) => {
          state.on = checked(LedParams, params).on;
          return { on: state.on };
        },
        "Led.Get": () => ({ on: state.on }),
        sum,
      },
      telemetry: [{ topic: "status", everyMs: 10_000, read: () => ({ on: state.on }) }],
    };
  },
  pump: () => {
    let runsUntil = 0;
    const isRunning = () => performance.now() < runsUntil;
    return {
      app: "pump",
      firmware: "2.0.1",
      reported: { app: { mode: "auto" } },
      functions: {
        "Pump.Start": (params) => {
          const { seconds } = checked(PumpParams, params);
          runsUntil = performance.now() + seconds * 1_000;
          return { running: true, seconds };
        },
        "Pump.Stop": () => {
          runsUntil = 0;
          return { running: false };
        },
        "Pump.GetState": () => ({ running: isRunning() }),
        sum,
      },
      telemetry: [
        {
          topic: "flow",
          everyMs: 5_000,
          read: () => ({ litres_per_minute: isRunning() ? round(11 + Math.random()) : 0 }),
        },
      ],
    };
  },
  weather: () => {
    const temperature = () => round(20 + 3 * Math.sin(Date.now() / 60_000) + Math.random() / 5);
    return {
      app: "weather station",
      firmware: "1.4.2",
      reported: { app: { unit: "celsius" } },
      functions: { "Temp.Read": () => ({ celsius: temperature() }), sum },
      telemetry: [
        { topic: "temperature", everyMs: 3_000, read: () => ({ celsius: temperature() }) },
        { topic: "humidity", everyMs: 7_000, read: () => ({ percent: round(40 + 20 * Math.random()) }) },
      ],
    };
  },
};

/** Parses the parameters of a call; throws the error that the caller gets. */
function checked<T extends z.ZodType>(schema: T, params: unknown): z.output<T> {
  const parsed = schema.safeParse(params);
  if (!parsed.success)
    throw new FunctionError(400, `Invalid parameters: ${parsed.error.issues[0]?.message ?? ""}`);
  return parsed.data;
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
