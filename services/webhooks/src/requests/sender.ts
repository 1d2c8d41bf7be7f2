import http from "node:http";
import https from "node:https";
import { isIP, type LookupFunction } from "node:net";
import type { Clock } from "@devmesh/service-kit/clock";
import { untilAborted } from "@devmesh/service-kit/rpc/context";
import { AddressRefused, type Guard, placeOf } from "./guard.ts";

/** How long a connection and the whole answer may take, in milliseconds. */
const defaultTimes = { connectMs: 5_000, answerMs: 15_000 };
/** Bytes of an answer that are read; none is kept. */
const maxAnswerBytes = 16 * 1024;
/** Answers 1xx before the real one. */
const maxInterimAnswers = 32;
/** How long a connection is kept for another request, in milliseconds. */
const idleMs = 4_000;
/** Connections to one host that wait for another request. */
const maxFreeSockets = 8;

/** One request. */
interface OutgoingRequest {
  readonly url: string;
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** What became of a request. `error` is null for a 2xx; otherwise it says why in words, never what was answered. */
export interface Outcome {
  readonly status: number | null;
  readonly error: string | null;
  /** Milliseconds that the receiver asks to wait for. */
  readonly retryAfterMs: number | null;
}

/** Sends requests. It follows no redirect and uses no proxy; Node checks certificates. */
export interface RequestSender {
  /** Never rejects; `signal` ends the request. */
  send(request: OutgoingRequest, signal: AbortSignal): Promise<Outcome>;
  close(): void;
}

/** A kept connection that was closed before the answer: the receiver may have closed it before the request came. */
class KeptConnectionClosed extends Error {
  override readonly name = "KeptConnectionClosed";
}

export interface SenderOptions {
  readonly guard: Guard;
  readonly clock: Pick<Clock, "now">;
  /** In milliseconds. */
  readonly times?: { readonly connectMs: number; readonly answerMs: number };
}

export function createSender({ guard, clock, times = defaultTimes }: SenderOptions): RequestSender {
  // A connection belongs to one name and port, and its address was checked when it was made.
  const lookupFor =
    (port: number): LookupFunction =>
    (host, options, callback) => {
      guard.resolve(host, port).then(
        (addresses) => {
          const [first] = addresses;
          if (options.all) callback(null, [...addresses]);
          else callback(null, first?.address ?? "", first?.family);
        },
        (error: NodeJS.ErrnoException) => callback(error, "", 0),
      );
    };
  // Lanes bound the requests of each webhook; a bound for a host would let a slow one hold up another of that host.
  const keeping = { keepAlive: true, maxFreeSockets, timeout: idleMs };
  const kept: Agents = { "http:": new http.Agent(keeping), "https:": new https.Agent(keeping) };
  const fresh: Agents = { "http:": new http.Agent(), "https:": new https.Agent() };

  async function assertAllowed(url: URL): Promise<void> {
    const reason = guard.refuse(url.href);
    if (reason !== null) throw new AddressRefused(`the URL ${reason}`);
    const { host, port } = placeOf(url);
    // No name is looked up for a connection to an address.
    if (url.protocol === "https:" && !isIP(host)) return;
    const addresses = await guard.resolve(host, port);
    if (url.protocol === "https:") return;
    if (!addresses.every(({ address }) => guard.isAllowedNetwork(address)))
      throw new AddressRefused("plain HTTP is not allowed to this host");
  }

  /** Ends with `signal` at the latest: Node's client has ends that it reports by `close` alone, or by no event. */
  async function request(
    url: URL,
    { body, headers }: OutgoingRequest,
    { agents, signal }: { readonly agents: Agents; readonly signal: AbortSignal },
  ): Promise<Outcome> {
    const { promise, resolve, reject } = Promise.withResolvers<Outcome>();
    const protocol = url.protocol === "http:" ? "http:" : "https:";
    const asked = (protocol === "http:" ? http : https).request(url, {
      method: "POST",
      agent: agents[protocol],
      lookup: lookupFor(placeOf(url).port),
      headers: {
        "User-Agent": "Devmesh-Webhooks",
        ...headers,
        "Content-Length": Buffer.byteLength(body),
      },
    });
    const outcomeOf = ({ statusCode: status = 0, headers }: http.IncomingMessage): Outcome => ({
      status,
      error: status >= 200 && status < 300 ? null : `status ${status}`,
      retryAfterMs: retryAfter(headers["retry-after"], clock.now().getTime()),
    });
    const onAbort = () => reject(signal.reason);
    signal.addEventListener("abort", onAbort);
    if (signal.aborted) onAbort();
    const late = new Error(`no connection in ${times.connectMs / 1_000} s`);
    const connecting = setTimeout(() => reject(late), times.connectMs);
    asked.once("socket", (socket) => {
      const connected = () => clearTimeout(connecting);
      if (socket.connecting) socket.once(protocol === "http:" ? "connect" : "secureConnect", connected);
      else connected();
    });
    let answered = false;
    const fail = (error: Error) =>
      reject(asked.reusedSocket && !answered && isClosing(error) ? new KeptConnectionClosed() : error);
    asked.on("error", fail);
    asked.once("close", () => {
      if (!answered) fail(connectionClosed());
    });
    let interim = 0;
    asked.on("information", () => {
      if (++interim > maxInterimAnswers) reject(new Error(`more than ${maxInterimAnswers} answers 1xx`));
    });
    asked.once("upgrade", (response, socket) => {
      answered = true;
      socket.destroy();
      resolve(outcomeOf(response));
    });
    asked.once("response", (response) => {
      answered = true;
      let bytes = 0;
      response.on("data", (chunk: Buffer) => {
        bytes += chunk.length;
        if (bytes <= maxAnswerBytes) return;
        resolve(outcomeOf(response));
        response.destroy();
      });
      response.once("end", () => resolve(outcomeOf(response)));
      response.on("error", reject);
      response.once("close", () => reject(connectionClosed()));
    });
    asked.end(body);
    try {
      return await promise;
    } catch (error) {
      asked.destroy();
      throw error;
    } finally {
      clearTimeout(connecting);
      signal.removeEventListener("abort", onAbort);
    }
  }

  /** A request on a kept connection that was closed is repeated at once, on a fresh one. */
  async function deliver(url: URL, outgoing: OutgoingRequest, signal: AbortSignal): Promise<Outcome> {
    try {
      return await request(url, outgoing, { agents: kept, signal });
    } catch (error) {
      if (!(error instanceof KeptConnectionClosed)) throw error;
      return await request(url, outgoing, { agents: fresh, signal });
    }
  }

  return {
    async send(outgoing, ended) {
      const timeout = AbortSignal.timeout(times.answerMs);
      const signal = AbortSignal.any([timeout, ended]);
      try {
        const url = new URL(outgoing.url);
        await untilAborted(signal, () => assertAllowed(url));
        return await deliver(url, outgoing, signal);
      } catch (error) {
        const reason = timeout.aborted
          ? `no end of the answer in ${times.answerMs / 1_000} s`
          : inWords(error);
        return { status: null, error: reason, retryAfterMs: null };
      }
    },
    close() {
      for (const agent of [...Object.values(kept), ...Object.values(fresh)]) agent.destroy();
    },
  };
}

/** An agent for each protocol. */
interface Agents {
  readonly "http:": http.Agent;
  readonly "https:": https.Agent;
}

function connectionClosed(): Error {
  return Object.assign(new Error("the connection was closed"), { code: "ECONNRESET" });
}

function isClosing({ code }: NodeJS.ErrnoException): boolean {
  return code === "ECONNRESET" || code === "EPIPE";
}

/** Codes of Node and OpenSSL are no text of the receiver. */
function inWords(error: unknown): string {
  if (error instanceof AddressRefused) return error.message;
  const { code, message } = error as NodeJS.ErrnoException;
  return code === undefined ? message : code;
}

/** Seconds or a date (RFC 9110, 10.2.3) in milliseconds from now; null for anything else. */
function retryAfter(header: string | undefined, nowMs: number): number | null {
  if (header === undefined) return null;
  const ms = /^\d{1,9}$/.test(header) ? Number(header) * 1_000 : Date.parse(header) - nowMs;
  return Number.isFinite(ms) && ms > 0 ? ms : null;
}
