import type { AnswerOf, ArgumentsOf } from "./answers.ts";
import type { DevmeshNotification, NotificationOptions, Schemas } from "./notifications.ts";
import { routes } from "./routes.ts";
import type { operations } from "./schema.ts";

/** Below it are the operations of one device. */
const devicePath = "/api/v2/devices/{id}";

/** Operations whose path has the device's id and no other parameter. */
type OperationOfDevice = {
  [O in keyof typeof routes &
    keyof operations]: (typeof routes)[O][1] extends `/api/v2/devices/{id}${infer Rest}`
    ? Rest extends `${string}{${string}`
      ? never
      : O
    : never;
}[keyof typeof routes & keyof operations];

type DeviceOperations = {
  readonly [O in OperationOfDevice]: (...init: ArgumentsOf<O>) => Promise<AnswerOf<O>>;
};

/** One device: each operation of its path by name, such as `readDevice()`, and what is used most. */
export interface DeviceHandle extends DeviceOperations {
  readonly id: string;
  /** Calls a function of the device, and gives its result. `timeout` is in milliseconds. */
  call(
    func: string,
    params?: Schemas["RpcParams"],
    options?: DeviceCallOptions,
  ): Promise<Schemas["RpcResult"]>;
  /** All its stored records that match, page after page. */
  records(query?: DeviceRecordQuery): AsyncGenerator<Schemas["DataRecord"], void, undefined>;
  /** What happens to it, as it happens. */
  notifications(
    options?: Omit<NotificationOptions, "device">,
  ): AsyncGenerator<DevmeshNotification, void, undefined>;
}

interface DeviceCallOptions {
  readonly timeout?: number;
  readonly signal?: AbortSignal;
}

type DeviceRecordQuery = Omit<NonNullable<operations["queryRecords"]["parameters"]["query"]>, "device_id">;

/** Parts of a request, as openapi-fetch takes them. */
interface Init {
  readonly query?: object;
  readonly header?: object;
  readonly body?: unknown;
  readonly signal?: AbortSignal;
}

/** Sends a request whose parts are not checked by type any more, and gives the body of its answer. */
export type SendUntyped = (
  method: "GET" | "POST" | "DELETE",
  path: string,
  init: Omit<Init, "query" | "header"> & { readonly params: object },
) => Promise<unknown>;

/** The operations of one device. */
export function deviceHandle(
  id: string,
  send: SendUntyped,
  lists: Pick<DeviceHandle, "records" | "notifications">,
): DeviceHandle {
  const bound = Object.entries(routes)
    .filter(([, [, path]]) => path.startsWith(devicePath) && !path.slice(devicePath.length).includes("{"))
    .map(([operation, [method, path]]) => [
      operation,
      ({ query, header, ...init }: Init = {}) =>
        send(method, path, { ...init, params: { path: { id }, query, header } }),
    ]);
  const call = (func: string, params: unknown = {}, { timeout, signal }: DeviceCallOptions = {}) =>
    send("POST", `${devicePath}/rpc/{func}`, {
      params: { path: { id, func }, query: { timeout } },
      body: params,
      ...(signal && { signal }),
    });
  // Built from the table that the type is derived from.
  return { id, ...Object.fromEntries(bound), call, ...lists } as DeviceHandle;
}
