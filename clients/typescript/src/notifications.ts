import { DevmeshProblem } from "./problem.ts";
import { isPassing, pause, pauseMs } from "./repeated.ts";
import type { components, operations } from "./schema.ts";

/** Bodies by name. */
export type Schemas = components["schemas"];

/** What the notification stream says besides `name` and `data`. */
interface NotificationFrame {
  /** Ascends; `after` takes it. */
  readonly seq: number;
  /** When it happened, RFC 3339. */
  readonly timestamp: string;
}

interface About extends NotificationFrame {
  /** The device, job, key, customer or webhook. */
  readonly id: string;
}

/** A frame of the notification stream by its `name`. A newer server may send others: let a `switch` skip them. */
export type DevmeshNotification =
  | (About & {
      readonly name: "online" | "offline" | "deleted";
      readonly data: Readonly<Record<string, never>>;
    })
  | (About & { readonly name: "created" | "updated"; readonly data: Schemas["Device"] })
  | (About & { readonly name: `rpc.in.${string}` | `rpc.out.${string}`; readonly data: unknown })
  | (About & { readonly name: "data"; readonly data: Schemas["DataRecord"] })
  | (About & { readonly name: "execution"; readonly data: Schemas["Execution"] })
  | (About & { readonly name: "job"; readonly data: Schemas["Job"] })
  | (About & {
      readonly name: "throttled";
      readonly data: { readonly why: "messages" | "bytes" | "storage"; readonly refused_ms: number };
    })
  | (About & {
      readonly name:
        | "login_refused"
        | "session_taken_over"
        | "subscription_limit"
        | "allowance_exceeded"
        | "publication_refused"
        | "subscription_refused";
      readonly data: Omit<Schemas["Diagnosis"], "name">;
    })
  | (NotificationFrame & {
      /** The device; null for an alert about the mesh. */
      readonly id: string | null;
      readonly name: "alert";
      readonly data: Schemas["Alert"];
    })
  | (About & {
      readonly name: "webhooks";
      readonly data: { readonly change: "created" | "updated" | "disabled" | "deleted" };
    })
  | (About & { readonly name: "keys"; readonly data: { readonly change: "created" | "deleted" } })
  | (About & {
      readonly name: "customers";
      readonly data: { readonly change: "invited" | "confirmed" | "updated" | "deleted" };
    })
  | (NotificationFrame & {
      readonly id: null;
      readonly name: "gap";
      readonly data: { readonly names?: readonly string[] };
    });

/** What of the stream is wanted. */
export interface NotificationOptions {
  /** The last `seq` received: what is kept of the frames after it comes first. */
  readonly after?: number;
  /** Also frames named `data`, with records. */
  readonly data?: boolean;
  /** Only frames of this device; with a master key. */
  readonly device?: string;
  /** Also frames named `keys`, `customers` and `webhooks`; with a master key. */
  readonly account?: boolean;
  /** Ends the stream. */
  readonly signal?: AbortSignal;
}

interface Connection {
  readonly url: string;
  /** Of each request; with the key. */
  readonly init: { readonly headers: Readonly<Record<string, string>>; readonly redirect: "manual" };
  readonly fetch: typeof fetch;
}

type NotificationQuery = Omit<NonNullable<operations["followNotifications"]["parameters"]["query"]>, "after">;

/**
 * Follows the notification stream of `path` until `signal` fires. It reconnects by itself and misses nothing that the
 * server keeps (one hour). Throws a {@link DevmeshProblem} when the server refuses the request itself.
 */
export async function* follow(
  { url, init, fetch }: Connection,
  path: "/api/v2/notify" | "/api/v2/m/device/notify",
  { after, data, device, account, signal }: NotificationOptions,
): AsyncGenerator<DevmeshNotification, void, undefined> {
  const query: NotificationQuery = {
    ...(data && { data: "1" }),
    ...(account && { account: "1" }),
    ...(device !== undefined && { device }),
  };
  let last = after;
  let wait: number = pauseMs.first;
  while (!signal?.aborted) {
    try {
      const position = new URLSearchParams(query);
      if (last !== undefined) position.set("after", String(last));
      const response = await fetch(`${url}${path}?${position}`, {
        ...init,
        headers: { ...init.headers, Accept: "text/event-stream" },
        ...(signal && { signal }),
      });
      if (!response.ok) throw await DevmeshProblem.of(response);
      for await (const frame of framesOf(response)) {
        last = frame.seq;
        wait = pauseMs.first;
        yield frame;
      }
    } catch (error) {
      if (signal?.aborted) return;
      if (error instanceof DevmeshProblem && !isPassing(error)) throw error;
    }
    await pause(wait, signal);
    wait = Math.min(2 * wait, pauseMs.longest);
  }
}

/** The frames of an event stream: each is one line that begins with `data:`. */
async function* framesOf({ body }: Response): AsyncGenerator<DevmeshNotification, void, undefined> {
  const reader = body?.pipeThrough(new TextDecoderStream()).getReader();
  if (reader === undefined) return;
  try {
    let rest = "";
    for (let read = await reader.read(); !read.done; read = await reader.read()) {
      const lines = (rest + read.value).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) if (line.startsWith("data: ")) yield JSON.parse(line.slice(6));
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}
