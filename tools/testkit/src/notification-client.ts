import { text } from "node:stream/consumers";
import { Notification } from "@devmesh/contracts/model/notification";
import { WebSocket } from "ws";
import { eventually } from "./eventually.ts";

/** A client of the notification stream. */
export interface NotificationClient {
  readonly frames: Notification[];
  /** Names of the frames, in their order. */
  names(): string[];
  /** Resolves with the frames once there are that many. */
  heard(count: number): Promise<Notification[]>;
  /** Resolves when the stream ends: with code and reason of a WebSocket, or `end` and the last comment. */
  readonly ended: Promise<readonly [number | string, string]>;
  leave(): void;
}

/** How a client presents itself. */
interface ClientOptions {
  /** For the `Authorization` header. */
  readonly key: string | null;
  readonly headers?: Readonly<Record<string, string>>;
}

const authorization = (key: string | null) => (key === null ? {} : { authorization: `Bearer ${key}` });

/** A stream that was refused, with the answer. */
export class StreamRefused extends Error {
  override readonly name = "StreamRefused";
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  /** The problem. */
  readonly problem: { readonly reason?: string; readonly detail?: string };

  constructor(status: number, headers: Readonly<Record<string, unknown>>, body: string) {
    super(`refused with ${status}: ${body}`);
    this.status = status;
    this.headers = headers;
    this.problem = JSON.parse(body);
  }
}

/** Connects over a WebSocket. Rejects with {@link StreamRefused}, or when it cannot connect. */
export async function openWebSocket(
  url: string,
  path: string,
  { key, headers = {} }: ClientOptions,
): Promise<NotificationClient & { readonly websocket: WebSocket }> {
  const websocket = new WebSocket(`${url.replace("http", "ws")}${path}`, {
    headers: { ...authorization(key), ...headers },
  });
  const frames: Notification[] = [];
  websocket.on("message", (data) => frames.push(Notification.parse(JSON.parse(String(data)))));
  const ended = new Promise<readonly [number, string]>((resolve) => {
    websocket.on("close", (code, reason) => resolve([code, String(reason)]));
  });
  await new Promise<void>((resolve, reject) => {
    websocket.once("open", resolve);
    websocket.on("error", reject);
    websocket.once("unexpected-response", (_request, answer) => {
      text(answer).then((body) => {
        reject(new StreamRefused(answer.statusCode ?? 0, answer.headers, body));
        websocket.terminate();
      }, reject);
    });
  });
  return { ...client(frames, ended, () => websocket.terminate()), websocket };
}

/** Connects as `text/event-stream`. */
export async function openEventStream(
  url: string,
  path: string,
  { key, headers = {} }: ClientOptions,
): Promise<NotificationClient & { readonly ids: string[]; readonly comments: string[] }> {
  const leaving = new AbortController();
  const response = await fetch(`${url}${path}`, {
    headers: { ...authorization(key), accept: "text/event-stream", ...headers },
    signal: leaving.signal,
  });
  if (!response.ok || response.body === null)
    throw new StreamRefused(response.status, Object.fromEntries(response.headers), await response.text());
  const frames: Notification[] = [];
  const ids: string[] = [];
  const comments: string[] = [];
  // Not by eventsource-parser, which drops the id that the stream begins with: that comes without data.
  const read = async () => {
    let rest = "";
    for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      const lines = (rest + chunk).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) {
        if (line.startsWith("id: ")) ids.push(line.slice(4));
        if (line.startsWith("data: ")) frames.push(Notification.parse(JSON.parse(line.slice(6))));
        if (line.startsWith(":")) comments.push(line.slice(1).trim());
      }
    }
  };
  const ended = read().then(
    () => ["end", comments.at(-1) ?? ""] as const,
    () => ["cut", ""] as const,
  );
  return { ...client(frames, ended, () => leaving.abort()), ids, comments };
}

function client(
  frames: Notification[],
  ended: NotificationClient["ended"],
  leave: () => void,
): NotificationClient {
  return {
    frames,
    ended,
    leave,
    names: () => frames.map(({ name }) => name),
    async heard(count) {
      await eventually(() => frames.length >= count);
      return frames;
    },
  };
}
