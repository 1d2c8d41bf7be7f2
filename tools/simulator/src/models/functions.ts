import { z } from "zod";
import { FunctionError } from "../function-error.ts";
import type { DeviceFunction } from "../simulated-device.ts";

const Numbers = z.union([z.array(z.number()), z.record(z.string(), z.number())]);

/** `sum` of an array's numbers, or of an object's members. */
export const sum: DeviceFunction = (params) =>
  Object.values(checked(Numbers, params)).reduce((total, number) => total + number, 0);

/** Parses the parameters of a call; throws the error that the caller gets. */
export function checked<T extends z.ZodType>(schema: T, params: unknown): z.output<T> {
  const parsed = schema.safeParse(params);
  if (!parsed.success)
    throw new FunctionError(400, `Invalid parameters: ${parsed.error.issues[0]?.message ?? ""}`);
  return parsed.data;
}
