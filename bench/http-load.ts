import { connect, type Socket } from "node:net";

/** The request to repeat. */
export interface HttpLoadOptions {
  readonly url: string;
  readonly method: "GET" | "POST";
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Status of every answer. Default 200. */
  readonly status?: number;
  /** Connections, each with one request in flight. */
  readonly connections: number;
  readonly forMs: number;
}

export interface HttpLoad {
  readonly requestsPerSecond: number;
  readonly latenciesMs: readonly number[];
}

/**
 * Repeats a request over keep-alive connections. It reads no more of an answer than it must, to leave the processors to
 * what is measured. Throws at a status other than 200.
 */
export async function loadHttp(options: HttpLoadOptions): Promise<HttpLoad> {
  const { hostname, port } = new URL(options.url);
  const request = requestBytes(options);
  const statusLine = `HTTP/1.1 ${options.status ?? 200} `;
  const latenciesMs: number[] = [];
  const begin = performance.now();
  const end = begin + options.forMs;
  await Promise.all(
    Array.from({ length: options.connections }, () => {
      const socket = connect({ host: hostname, port: Number(port), noDelay: true });
      return repeat({ socket, request, statusLine, end, latenciesMs });
    }),
  );
  return { requestsPerSecond: (latenciesMs.length / (performance.now() - begin)) * 1000, latenciesMs };
}

function requestBytes({ url, method, headers, body }: HttpLoadOptions): Buffer {
  const { host, pathname, search } = new URL(url);
  const all = {
    Host: host,
    ...headers,
    ...(body === undefined
      ? {}
      : { "Content-Type": "application/json", "Content-Length": String(Buffer.byteLength(body)) }),
  };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  return Buffer.from(`${method} ${pathname}${search} HTTP/1.1\r\n${lines.join("")}\r\n${body ?? ""}`);
}

interface Repetition {
  readonly socket: Socket;
  readonly request: Buffer;
  /** How each answer begins. */
  readonly statusLine: string;
  /** When no request is sent any more, by `performance.now()`. */
  readonly end: number;
  /** Gets the time of each answer. */
  readonly latenciesMs: number[];
}

function repeat({ socket, request, statusLine, end, latenciesMs }: Repetition): Promise<void> {
  return new Promise((resolve, reject) => {
    let received = Buffer.alloc(0);
    let sentAt = 0;
    const fail = (error: Error) => {
      socket.destroy();
      reject(error);
    };
    const send = () => {
      sentAt = performance.now();
      socket.write(request);
    };
    socket.on("connect", send);
    socket.on("error", fail);
    socket.on("close", () => reject(new Error("the server closed a connection")));
    socket.on("data", (piece) => {
      received = received.length === 0 ? piece : Buffer.concat([received, piece]);
      let length: number | null;
      try {
        length = answerLength(received, statusLine);
      } catch (error) {
        return fail(error instanceof Error ? error : new Error(String(error)));
      }
      if (length === null || received.length < length) return;
      received = Buffer.alloc(0);
      const now = performance.now();
      latenciesMs.push(now - sentAt);
      if (now < end) return send();
      resolve();
      socket.destroy();
    });
  });
}

/** Length of the answer with its headers; null while these are incomplete. */
function answerLength(received: Buffer, statusLine: string): number | null {
  const headEnd = received.indexOf("\r\n\r\n");
  if (headEnd === -1) return null;
  const head = received.toString("latin1", 0, headEnd);
  if (!head.startsWith(statusLine)) throw new Error(`answered: ${received.toString("utf8")}`);
  const length = /^content-length: (\d+)$/im.exec(head)?.[1];
  if (length === undefined) throw new Error(`an answer without a length: ${head}`);
  return headEnd + 4 + Number(length);
}
