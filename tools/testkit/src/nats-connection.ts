import { connect, type Socket } from "node:net";

/** A message as it came over the wire. */
export interface WireMessage {
  readonly subject: string;
  readonly reply: string | null;
  readonly headers: Readonly<Record<string, string>>;
  readonly payload: string;
}

/** Login of a {@link connectNats}. */
export interface NatsLogin {
  readonly port: number;
  readonly user?: string;
  readonly password?: string;
  /** Where replies arrive; default `_INBOX.<random>`. */
  readonly inbox?: string;
}

/**
 * A plain connection to nats-server, for tests of what the server itself does and allows: no client library retries,
 * multiplexes or hides a refusal.
 */
export interface NatsTestConnection extends AsyncDisposable {
  publish(subject: string, payload?: string, reply?: string): void;
  /** Subscribes; resolves when the server has the subscription, rejects with its error. */
  subscribe(subject: string, take: (message: WireMessage) => void, queue?: string): Promise<void>;
  /** Publishes; resolves when the server has processed it, rejects with its error. */
  tryPublish(subject: string, payload?: string): Promise<void>;
  /** Resolves with one reply (default: within 5 s). Rejects when nobody listens, or with the server's error. */
  request(subject: string, payload?: string, withinMs?: number): Promise<WireMessage>;
  /** {@link request} with JSON; rejects with the description of a JetStream error. */
  requestJson(subject: string, payload?: unknown): Promise<Record<string, unknown>>;
  /** Resolves when the server has processed all that was sent. */
  flush(): Promise<void>;
  close(): Promise<void>;
}

/** Connects and logs in; rejects with the server's error. */
export async function connectNats({ port, user, password, inbox }: NatsLogin): Promise<NatsTestConnection> {
  const socket = connect({ port, host: "127.0.0.1", noDelay: true });
  const inboxPrefix = inbox ?? `_INBOX.${Math.random().toString(36).slice(2)}`;
  const takers = new Map<string, (message: WireMessage) => void>();
  /** PINGs in flight: an error that comes before a PONG is that of what was sent before the PING. */
  const pings: { resolve: () => void; reject: (error: Error) => void; refusal: string | null }[] = [];
  let lastSid = 0;
  let ended: Error | null = null;

  const end = (error: Error) => {
    ended ??= error;
    for (const { reject } of pings.splice(0)) reject(ended);
  };
  socket.on("error", (cause) => end(new Error("the connection to nats-server failed", { cause })));
  socket.on("close", () => end(new Error("nats-server closed the connection")));
  readProtocol(socket, {
    message: (sid, message) => takers.get(sid)?.(message),
    error: (words) => {
      const [first] = pings;
      if (first) first.refusal ??= words;
      else if (!/permissions violation/i.test(words)) end(new Error(words));
    },
    pong() {
      const ping = pings.shift();
      if (ping?.refusal) ping.reject(new Error(ping.refusal));
      else ping?.resolve();
    },
    ping: () => socket.write("PONG\r\n"),
  });
  const flush = () =>
    new Promise<void>((resolve, reject) => {
      if (ended) return reject(ended);
      pings.push({ resolve, reject, refusal: null });
      socket.write("PING\r\n");
    });
  const options = {
    verbose: false,
    pedantic: false,
    headers: true,
    no_responders: true,
    lang: "test",
    protocol: 1,
  };
  socket.write(`CONNECT ${JSON.stringify({ ...options, user, pass: password })}\r\n`);
  await flush();

  const publish = (subject: string, payload = "", reply = "") => {
    socket.write(`PUB ${subject} ${reply ? `${reply} ` : ""}${Buffer.byteLength(payload)}\r\n${payload}\r\n`);
  };
  const addSubscription = (subject: string, take: (message: WireMessage) => void, queue = "") => {
    const sid = String(++lastSid);
    takers.set(sid, take);
    socket.write(`SUB ${subject} ${queue ? `${queue} ` : ""}${sid}\r\n`);
    return sid;
  };
  const request = async (subject: string, payload = "", withinMs = 5_000) => {
    const reply = `${inboxPrefix}.${Math.random().toString(36).slice(2)}`;
    let sid = "";
    const answer = new Promise<WireMessage>((resolve, reject) => {
      const timer = setTimeout(
        () => reject(new Error(`no answer on ${subject} in ${withinMs} ms`)),
        withinMs,
      );
      sid = addSubscription(reply, (message) => {
        clearTimeout(timer);
        if (message.headers.Status === "503") reject(new Error(`nobody answers on ${subject}`));
        else resolve(message);
      });
      publish(subject, payload, reply);
      flush().catch((error) => {
        clearTimeout(timer);
        reject(error);
      });
    });
    try {
      return await answer;
    } finally {
      takers.delete(sid);
      if (!ended) socket.write(`UNSUB ${sid}\r\n`);
    }
  };
  const close = async () => {
    if (socket.destroyed) return;
    await new Promise<void>((resolve) => {
      socket.once("close", () => resolve());
      socket.destroy();
    });
  };
  return {
    publish,
    async subscribe(subject, take, queue) {
      addSubscription(subject, take, queue);
      await flush();
    },
    async tryPublish(subject, payload) {
      publish(subject, payload);
      await flush();
    },
    request,
    async requestJson(subject, payload) {
      const answer = await request(subject, payload === undefined ? "" : JSON.stringify(payload));
      const parsed: Record<string, unknown> = JSON.parse(answer.payload);
      const { error } = parsed;
      if (typeof error === "object" && error !== null && "description" in error)
        throw new Error(String(error.description));
      return parsed;
    },
    flush,
    close,
    [Symbol.asyncDispose]: close,
  };
}

interface ProtocolEvents {
  message(sid: string, message: WireMessage): void;
  error(words: string): void;
  pong(): void;
  ping(): void;
}

/** Reads the NATS client protocol: lines, and after MSG and HMSG the announced bytes. */
function readProtocol(socket: Socket, events: ProtocolEvents): void {
  let buffer = Buffer.alloc(0);
  const readOne = (): boolean => {
    const lineEnd = buffer.indexOf("\r\n");
    if (lineEnd === -1) return false;
    const line = buffer.subarray(0, lineEnd).toString("utf8");
    const [verb = "", ...fields] = line.split(" ");
    if (verb !== "MSG" && verb !== "HMSG") {
      buffer = buffer.subarray(lineEnd + 2);
      if (verb === "PING") events.ping();
      if (verb === "PONG") events.pong();
      if (verb === "-ERR") events.error(line.slice(5).replaceAll("'", ""));
      return true;
    }
    const total = Number(fields.at(-1));
    const start = lineEnd + 2;
    if (buffer.length < start + total + 2) return false;
    const headerBytes = verb === "HMSG" ? Number(fields.at(-2)) : 0;
    const sizes = verb === "HMSG" ? 2 : 1;
    const [subject = "", sid = "", reply = null] = fields.slice(0, fields.length - sizes);
    const headers = parseHeaders(buffer.subarray(start, start + headerBytes).toString("utf8"));
    const payload = buffer.subarray(start + headerBytes, start + total).toString("utf8");
    buffer = buffer.subarray(start + total + 2);
    events.message(sid, { subject, reply, headers, payload });
    return true;
  };
  socket.on("data", (piece) => {
    buffer = Buffer.concat([buffer, piece]);
    while (readOne());
  });
}

/** `NATS/1.0 503` gives `{Status: "503"}`; then one header a line. */
function parseHeaders(text: string): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const line of text.split("\r\n")) {
    const status = /^NATS\/1\.0 (\d{3})/.exec(line)?.[1];
    if (status) headers.Status = status;
    const header = /^([^:]+): ?(.*)$/.exec(line);
    if (header?.[1] && header[2] !== undefined) headers[header[1]] = header[2];
  }
  return headers;
}
