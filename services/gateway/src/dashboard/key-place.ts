import type { Request } from "express";

/** Where the page for the sign-in asks for the file of the master key; no part of the API. */
export const keyPlacePath = "/key-place.json";

/** Headers that proxies add. */
const forwarding = ["forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via"] as const;

/** What decides whether a request comes from the machine of the gateway. */
type Origin = Pick<Request, "headers" | "hostname" | "httpVersion" | "socket">;

/**
 * Whether a client on this machine sent the request, without a proxy between: its connection and the name that it asked
 * for are of the loopback, and no header is a proxy's. nginx forwards by HTTP/1.0 unless it is configured otherwise.
 */
export function isOfThisMachine({ headers, hostname, httpVersion, socket }: Origin): boolean {
  return (
    /^(::1$|(::ffff:)?127\.)/.test(socket.remoteAddress ?? "") &&
    /^(localhost|127\.[\d.]+|\[::1\])$/.test(hostname) &&
    httpVersion !== "1.0" &&
    forwarding.every((name) => headers[name] === undefined)
  );
}
