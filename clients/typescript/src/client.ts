import createFetchClient from "openapi-fetch";
import type { Requests } from "./answers.ts";
import { type DeviceHandle, deviceHandle, type SendUntyped } from "./device.ts";
import { type Cancellable, type Jobs, jobsOf } from "./jobs.ts";
import { type DevmeshNotification, follow, type NotificationOptions, type Schemas } from "./notifications.ts";
import { DevmeshProblem } from "./problem.ts";
import type { operations, paths } from "./schema.ts";
import { DevmeshUnreachable } from "./unreachable.ts";

export type { DeviceHandle } from "./device.ts";
export type { Jobs, WaitForJob } from "./jobs.ts";
export type { DevmeshNotification, NotificationOptions } from "./notifications.ts";
export { DevmeshProblem, type Problem } from "./problem.ts";
export type { components, operations, paths } from "./schema.ts";
export { DevmeshUnreachable } from "./unreachable.ts";

/** Options of {@link createDevmeshClient}. */
export interface DevmeshOptions {
  /** Address of the gateway, such as `http://127.0.0.1:8080`. */
  readonly url: string;
  /** Any API key: the kind decides which routes answer. */
  readonly key: string;
  /** Default: the global one. */
  readonly fetch?: typeof fetch;
}

type QueryOf<O extends keyof operations> = NonNullable<operations[O]["parameters"]["query"]>;

/** The bytes of a file. */
type FirmwareContent = Blob | Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array>;

/**
 * The REST API by `GET`, `POST` and `DELETE` with a path of the OpenAPI document, as openapi-fetch does it. A response
 * that is no success is thrown as a {@link DevmeshProblem}, a connection that fails as a {@link DevmeshUnreachable}.
 */
export interface DevmeshClient extends Requests {
  /** One device by its id. */
  device(id: string): DeviceHandle;
  /** All devices that match, page after page. */
  devices(query?: QueryOf<"listDevices">): AsyncGenerator<Schemas["Device"], void, undefined>;
  /** All stored records that match, page after page; `limit` bounds a page. */
  records(query?: QueryOf<"queryRecords">): AsyncGenerator<Schemas["DataRecord"], void, undefined>;
  /** All alerts that match, the newest first, page after page. */
  alerts(query?: QueryOf<"listAlerts">): AsyncGenerator<Schemas["Alert"], void, undefined>;
  readonly jobs: Jobs;
  /** All firmware, the newest first, page after page. */
  firmware(): AsyncGenerator<Schemas["Firmware"], void, undefined>;
  /** Sends the content of firmware; resolves once it is stored whole. A stream is sent as it is read. */
  uploadFirmware(id: string, content: FirmwareContent, options?: Cancellable): Promise<Schemas["Firmware"]>;
  /** The content of firmware; `range`, such as `bytes=0-1023`, for a part of it. Its body can be read as a stream. */
  downloadFirmware(id: string, options?: Cancellable & { readonly range?: string }): Promise<Response>;
  /** What happens, as it happens: of all devices with a master key. It reconnects by itself. */
  notifications(options?: NotificationOptions): AsyncGenerator<DevmeshNotification, void, undefined>;
  /** Events of one device, with its public key, cut by its ACL. */
  ownNotifications(
    options?: Omit<NotificationOptions, "device" | "account">,
  ): AsyncGenerator<DevmeshNotification, void, undefined>;
}

/** Creates a client for one key. */
export function createDevmeshClient(options: DevmeshOptions): DevmeshClient {
  const url = options.url.replace(/\/+$/, "");
  const key = options.key.trim();
  // fetch would quote the key in its error.
  if (!/^[!-~]+$/.test(key)) throw new TypeError("the key is empty or has a character that no key has");
  const init = { headers: { Authorization: `Bearer ${key}` }, redirect: "manual" } as const;
  const fetch: typeof globalThis.fetch = async (input, more) => {
    try {
      return await (options.fetch ?? globalThis.fetch)(input, more);
    } catch (error) {
      const signal = more?.signal ?? (input instanceof Request ? input.signal : undefined);
      throw signal?.aborted ? error : new DevmeshUnreachable(url, error);
    }
  };
  const connection = { url, init, fetch };
  const client = createFetchClient<paths>({ baseUrl: url, ...init, fetch: (request) => fetch(request) });
  client.use({
    async onResponse({ response }) {
      if (!response.ok) throw await DevmeshProblem.of(response);
    },
  });
  const { GET, POST, DELETE } = client as unknown as Requests;
  const send: SendUntyped = async (method, path, parts) => {
    const request = client[method] as (path: string, init: object) => Promise<{ readonly data?: unknown }>;
    return (await request(path, parts)).data;
  };

  const contentOf = (id: string) => `${url}/api/v2/firmware/${encodeURIComponent(id)}/content`;
  async function askContent(target: string, headers: Record<string, string>, more: RequestInit) {
    const all = { ...init, ...more, headers: { ...init.headers, ...headers } };
    const response = await fetch(target, all);
    if (!response.ok) throw await DevmeshProblem.of(response);
    return response;
  }

  async function* items<T>(path: string, query: object): AsyncGenerator<T, void, undefined> {
    const given = Object.entries(query).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, String(value)]],
    );
    let next: string | undefined = `${path}?${new URLSearchParams(given)}`;
    while (next !== undefined) {
      const response: Response = await fetch(url + next, init);
      if (!response.ok) throw await DevmeshProblem.of(response);
      yield* (await response.json()) as T[];
      next = /<(\/[^>]*)>; rel="next"/.exec(response.headers.get("link") ?? "")?.[1];
    }
  }

  const devmesh: DevmeshClient = {
    GET,
    POST,
    DELETE,
    device: (id) =>
      deviceHandle(id, send, {
        records: (query = {}) => devmesh.records({ ...query, device_id: id }),
        notifications: (options = {}) => devmesh.notifications({ ...options, device: id }),
      }),
    devices: (query = {}) => items<Schemas["Device"]>("/api/v2/devices", { limit: 1_000, ...query }),
    records: (query = {}) => items<Schemas["DataRecord"]>("/api/v2/data", { limit: 5_000, ...query }),
    alerts: (query = {}) => items<Schemas["Alert"]>("/api/v2/alerts", { limit: 1_000, ...query }),
    jobs: jobsOf({ GET, POST }, (id, query = {}) =>
      items<Schemas["Execution"]>(`/api/v2/jobs/${encodeURIComponent(id)}/executions`, {
        limit: 1_000,
        ...query,
      }),
    ),
    firmware: () => items<Schemas["Firmware"]>("/api/v2/firmware", { limit: 100 }),
    async uploadFirmware(id, body, { signal } = {}) {
      const streamed = body instanceof ReadableStream ? { duplex: "half" } : {};
      const sent: RequestInit = { method: "POST", body, ...streamed, ...(signal && { signal }) };
      const headers = { "Content-Type": "application/octet-stream" };
      return (await askContent(contentOf(id), headers, sent)).json();
    },
    downloadFirmware: (id, { range, signal } = {}) =>
      askContent(contentOf(id), range === undefined ? {} : { Range: range }, signal ? { signal } : {}),
    notifications: (options = {}) => follow(connection, "/api/v2/notify", options),
    ownNotifications: (options = {}) => follow(connection, "/api/v2/m/device/notify", options),
  };
  return devmesh;
}
