import type { DataRecord } from "@devmesh/contracts/model/data-record";
import { sendJson, startHttpServer } from "./http-server.ts";

/** The selection of all records. */
export const everything = { filter: "", device: "", since: "", until: "" } as const;

const start = Date.parse("2026-03-01T00:00:00.000Z");

/** A record of the device `boiler`, so many milliseconds after the first of March 2026. */
export function record(id: number, ms: number = id): DataRecord {
  return {
    id,
    timestamp: new Date(start + ms).toISOString(),
    device_id: "boiler",
    topic: "db/boiler/temperature",
    message: `{"celsius":${id}}`,
  };
}

/** The records with these ids, all of one time where one is given. */
export function recordsOf(from: number, to: number, ms?: number): DataRecord[] {
  return Array.from({ length: to - from + 1 }, (_, at) => record(from + at, ms ?? from + at));
}

/** A server that answers `GET /data` out of `stored`, as it is when asked, as the contract says. */
export function startDataServer(stored: readonly DataRecord[]) {
  return startHttpServer((request, response) => {
    const { searchParams } = new URL(request.url ?? "/", "http://localhost");
    const since = Date.parse(searchParams.get("since") ?? "1970-01-01T00:00:00Z");
    const until = Date.parse(searchParams.get("until") ?? "9999-01-01T00:00:00Z");
    const skip = Number(searchParams.get("skip") ?? 0);
    const after = Number(searchParams.get("after") ?? 0);
    const limit = Number(searchParams.get("limit") ?? 100);
    const matching = stored.filter(({ id, timestamp }) => {
      const at = Date.parse(timestamp);
      return id > after && at >= since && at < until;
    });
    const from = skip < 0 ? Math.max(0, matching.length + skip) : skip;
    sendJson(response, 200, matching.slice(from, from + Math.min(limit, skip < 0 ? -skip : limit)));
  });
}
