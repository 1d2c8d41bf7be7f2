import { z } from "zod";
import {
  type DeviceModel,
  FunctionError,
  type SimulatedDevice,
  startSimulatedDevice,
} from "./simulated-device.ts";

/** Where the demonstration's devices are made and connect. */
export interface DemoMesh {
  /** Base address of the REST API, without a slash at its end. */
  readonly url: string;
  readonly mqttUrl: string;
  readonly masterKey: string;
}

/** Devices that run until they are stopped. */
export interface Demo {
  readonly devices: readonly SimulatedDevice[];
  stop(): Promise<void>;
}

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

/** Three devices to try the API with: a lamp, a pump and a weather station. */
const models: Readonly<Record<string, () => DeviceModel>> = {
  "demo-lamp": () => {
    const state = { on: false };
    return {
      app: "lamp",
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
  "demo-pump": () => {
    let runsUntil = 0;
    const isRunning = () => performance.now() < runsUntil;
    return {
      app: "pump",
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
  "demo-weather": () => {
    const temperature = () => round(20 + 3 * Math.sin(Date.now() / 60_000) + Math.random() / 5);
    return {
      app: "weather station",
      reported: { app: { unit: "celsius" } },
      functions: { "Temp.Read": () => ({ celsius: temperature() }), sum },
      telemetry: [
        { topic: "temperature", everyMs: 3_000, read: () => ({ celsius: temperature() }) },
        { topic: "humidity", everyMs: 7_000, read: () => ({ percent: round(40 + 20 * Math.random()) }) },
      ],
    };
  },
};

/** Creates the devices that are not there yet, over the REST API, and connects them. Throws when the mesh refuses one. */
export async function startDemo(mesh: DemoMesh): Promise<Demo> {
  const devices: SimulatedDevice[] = [];
  const stop = async () => {
    await Promise.all(devices.map((device) => device.stop()));
  };
  try {
    for (const [id, model] of Object.entries(models)) {
      const token = await deviceToken(mesh, id);
      devices.push(await startSimulatedDevice({ url: mesh.mqttUrl, id, token }, model()));
    }
  } catch (error) {
    await stop();
    throw error;
  }
  return { devices, stop };
}

const WithToken = z.object({ token: z.string() });

async function deviceToken({ url, masterKey }: DemoMesh, id: string): Promise<string> {
  const devices = `${url}/api/v2/devices`;
  const headers = { Authorization: `Bearer ${masterKey}`, "Content-Type": "application/json" };
  const bound = () => AbortSignal.timeout(10_000);
  const body = JSON.stringify({ id, name: `Demonstration: ${id.replace("demo-", "")}` });
  const created = await fetch(devices, { method: "POST", headers, body, signal: bound() });
  if (created.ok) return WithToken.parse(await created.json()).token;
  if (created.status !== 409) throw new Error(`${id} could not be created: HTTP status ${created.status}`);
  const known = await fetch(`${devices}/${id}/credentials`, { headers, signal: bound() });
  if (!known.ok) throw new Error(`the credentials of ${id} could not be read: HTTP status ${known.status}`);
  return WithToken.parse(await known.json()).token;
}

/** Parses the parameters of a call, or fails it as a device does. */
function checked<T extends z.ZodType>(schema: T, params: unknown): z.output<T> {
  const parsed = schema.safeParse(params);
  if (!parsed.success)
    throw new FunctionError(400, `Invalid parameters: ${parsed.error.issues[0]?.message ?? ""}`);
  return parsed.data;
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
