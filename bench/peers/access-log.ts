import { pino } from "pino";

/** The logger of a gateway: JSON lines, written at once to standard output, as the services of the mesh do. */
const log = pino({ level: "info", base: { service: "gateway" } }, pino.destination({ dest: 1, sync: true }));

/** Writes the line of a request that has been answered. */
export function logRequest(method: string, route: string, status: number, startedAtMs: number): void {
  log.info({ method, route, status, ms: Math.round((performance.now() - startedAtMs) * 10) / 10 }, "request");
}
