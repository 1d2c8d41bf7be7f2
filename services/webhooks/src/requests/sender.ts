import http from "node:http";
import https from "node:https";
import type { LookupFunction } from "node:net";
import type { Clock } from "@devmesh/service-kit/clock";
import { AddressRefused, type Guard, hostOf } from "./guard.ts";

/** How long a connection and the whole answer may take, in milliseconds. */
const connectMs = 5_000;
const answerMs = 15_000;
/** Bytes of an answer that are read; none is kept. */
const maxAnswerBytes = 16 * 1024;
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

export function createSender(guard: Guard, clock: Pick<Clock, "now">): RequestSender {
  // A connection belongs to one name and port, and its address was checked when it was made.
  const lookup: LookupFunction = (host, options, callback) => {
    guard.resolve(host).then(
      (addresses) => {
        const [first] = addresses;
        if (options.all) callback(null, [...addresses]);
        else callback(null, first?.address ?? "", first?.family);
      },
      (error: NodeJS.ErrnoException) => callback(error, "", 0),
    );
  };
  // Lanes bound the requests of each webhook; a bound for a host would let a slow one hold up another of that host.
  const kept = { keepAlive: true, maxFreeSockets, timeout: idleMs };
  const agents = { "http:": new http.Agent(kept), "https:": new https.Agent(kept) };

  async function assertAllowed(url: URL): Promise<void> {
    const reason = guard.refuse(url.href);
    if (reason !== null) throw new AddressRefused(`the URL ${reason}`);
    if (url.protocol === "https:") return;
    const addresses = await guard.resolve(hostOf(url));
    if (!addresses.every(({ address }) => guard.isAllowedNetwork(address)))
      throw new AddressRefused("plain HTTP is not allowed to this host");
  }

  function request(url: URL, { body, headers }: OutgoingRequest, signal: AbortSignal): Promise<Outcome> {
    return new Promise((resolve, reject) => {
      const isPlain = url.protocol === "http:";
      const asked = (isPlain ? http : https).request(url, {
        method: "POST",
        agent: agents[isPlain ? "http:" : "https:"],
        lookup,
        signal,
        headers: {
          "User-Agent": "Devmesh-Webhooks",
          ...headers,
          "Content-Length": Buffer.byteLength(body),
        },
      });
      const connecting = setTimeout(() => asked.destroy(new Error("no connection in 5 s")), connectMs);
      asked.once("socket", (socket) => {
        const connected = () => clearTimeout(connecting);
        if (socket.connecting) socket.once(isPlain ? "connect" : "secureConnect", connected);
        else connected();
      });
      asked.once("error", (error) => {
        clearTimeout(connecting);
        reject(error);
      });
      asked.once("response", (response) => {
        const status = response.statusCode ?? 0;
        const outcome = (): Outcome => ({
          status,
          error: status >= 200 && status < 300 ? null : `status ${status}`,
          retryAfterMs: retryAfter(response.headers["retry-after"], clock.now().getTime()),
        });
        let bytes = 0;
        response.on("data", (chunk: Buffer) => {
          bytes += chunk.length;
          if (bytes <= maxAnswerBytes) return;
          response.destroy();
          resolve(outcome());
        });
        response.once("end", () => resolve(outcome()));
        response.once("error", reject);
      });
      asked.end(body);
    });
  }

  return {
    async send(outgoing, ended) {
      const timeout = AbortSignal.timeout(answerMs);
      const signal = AbortSignal.any([timeout, ended]);
      try {
        const url = new URL(outgoing.url);
        await Promise.race([
          assertAllowed(url),
          new Promise<never>((_, reject) =>
            signal.addEventListener("abort", () => reject(signal.reason), { once: true }),
          ),
        ]);
        return await request(url, outgoing, signal);
      } catch (error) {
        return { status: null, error: inWords(error, timeout), retryAfterMs: null };
      }
    },
    close() {
      for (const agent of Object.values(agents)) agent.destroy();
    },
  };
}

/** Codes of Node and OpenSSL are no text of the receiver. */
function inWords(error: unknown, timeout: AbortSignal): string {
  if (timeout.aborted) return "no end of the answer in 15 s";
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
