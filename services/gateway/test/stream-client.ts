import type { Notification } from "@devmesh/contracts/model/notification";
import { eventually } from "@devmesh/testkit/eventually";
import { WebSocket } from "ws";
import { secrets } from "./stand-ins.ts";

/** A client of the notification stream and what it heard. */
export interface StreamClient {
  readonly frames: Notification[];
  /** Names of the frames, in their order. */
  names(): string[];
  /** Resolves with the frames when there are that many. */
  heard(count: number): Promise<Notification[]>;
  /** Resolves when the stream ended: the code and reason of a WebSocket, `end` and the last comment of an event stream. */
  readonly ended: Promise<readonly [number | string, string]>;
  leave(): void;
}

interface ClientOptions {
  readonly key?: keyof typeof secrets;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Connects over a WebSocket; rejects with the answer where it is refused. */
export async function openWebSocket(
  url: string,
  path: string,
  { key = "master", headers = {} }: ClientOptions = {},
): Promise<StreamClient & { readonly websocket: WebSocket }> {
  const websocket = new WebSocket(`${url.replace("http", "ws")}${path}`, {
    headers: { authorization: `Bearer ${secrets[key]}`, ...headers },
  });
  const frames: Notification[] = [];
  websocket.on("message", (data) => frames.push(JSON.parse(String(data)) as Notification));
  const ended = new Promise<readonly [number, string]>((resolve) => {
    websocket.on("close", (code, reason) => resolve([code, String(reason)]));
  });
  await new Promise<void>((resolve, reject) => {
    websocket.once("open", resolve);
    websocket.on("error", reject);
  });
  return { ...client(frames, ended, () => websocket.terminate()), websocket };
}

/** Connects as `text/event-stream`. */
export async function openEventStream(
  url: string,
  path: string,
  { key = "master", headers = {} }: ClientOptions = {},
): Promise<StreamClient & { readonly ids: string[]; readonly comments: string[] }> {
  const leaving = new AbortController();
  const response = await fetch(`${url}${path}`, {
    headers: { authorization: `Bearer ${secrets[key]}`, accept: "text/event-stream", ...headers },
    signal: leaving.signal,
  });
  if (!response.ok || response.body === null) throw new Error(`refused with ${response.status}`);
  const frames: Notification[] = [];
  const ids: string[] = [];
  const comments: string[] = [];
  const read = async () => {
    let text = "";
    for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      text += chunk;
      const lines = text.split("\n");
      text = lines.pop() ?? "";
      for (const line of lines) {
        if (line.startsWith("id: ")) ids.push(line.slice(4));
        if (line.startsWith("data: ")) frames.push(JSON.parse(line.slice(6)) as Notification);
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

function client(frames: Notification[], ended: StreamClient["ended"], leave: () => void): StreamClient {
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
