import { data as contract } from "@devmesh/contracts/data";
import { startOf } from "@devmesh/contracts/model/duration";
import { maxSeriesOfAnswer, type SeriesFunction, type SeriesSpan } from "@devmesh/contracts/model/series";
import { withoutFormulas } from "@devmesh/contracts/model/spreadsheet-text";
import type { KeyKind, Principal } from "@devmesh/contracts/principal";
import type { storedData } from "@devmesh/contracts/rest/stored-data";
import type { Clock } from "@devmesh/service-kit/clock";
import { ServiceError } from "@devmesh/service-kit/errors";
import type { CallContext } from "@devmesh/service-kit/rpc/context";
import type { CallOutput } from "@devmesh/service-kit/rpc/implementation";
import { stringify } from "csv-stringify/sync";
import type { z } from "zod";
import { json, type Reply, stream, type Within } from "../http/exchange.ts";
import { invalidRequest } from "../http/gateway-errors.ts";
import type { GatewayClients } from "./handlers.ts";

type SeriesQuery = z.output<(typeof storedData)["readSeries"]["query"]>;
type Listed = CallOutput<typeof contract, "listSeries">;
type ReadSeries = CallOutput<typeof contract, "readSeries">;

/** Who asks. */
interface Asking {
  readonly principal: Extract<Principal, { readonly kind: KeyKind }>;
  readonly caller: string | undefined;
  /** Earlier numbers are not the key's to read. */
  readonly since?: string | undefined;
}

interface Answering {
  readonly preferred: <const T extends readonly [string, ...string[]]>(types: T) => T[number];
  readonly call: CallContext;
  readonly within: Within;
}

/** One series of an answer. */
interface AskedSeries {
  readonly device_id: string;
  readonly pointer: string;
}

/** Timeout for one series, in milliseconds, and how many are read together. */
const readMs = 10_000;
const readTogether = 4;

function numberOf(span: SeriesSpan, fn: SeriesFunction): number | null {
  if (fn !== "avg") return span[fn];
  return span.sum === null ? null : span.sum / span.count;
}

/**
 * Numbers over time (api.md, Stored data). `data` decides which a key sees, series by series; devices of others are
 * refused before, since an answer begins with its first series.
 */
export function seriesAnswers({ data, devices }: Pick<GatewayClients, "data" | "devices">, clock: Clock) {
  async function askedSeries(
    query: SeriesQuery,
    { principal }: Asking,
    call: CallContext,
  ): Promise<AskedSeries[]> {
    const { device_id, where, pointer: pointers = [""] } = query;
    let ids = device_id;
    if ("device_id" in principal) ids = ownDevice(principal.device_id, device_id);
    else if (where !== undefined && ids === undefined)
      ids = (await devices.selectDevices({ where, limit: maxSeriesOfAnswer + 1 }, call)).items;
    else if (where !== undefined || ids === undefined)
      throw invalidRequest([{ pointer: "/query/device_id", detail: "or `where` is needed, and not both" }]);
    const all = ids.flatMap((id) => pointers.map((pointer) => ({ device_id: id, pointer })));
    if (all.length <= maxSeriesOfAnswer) return all;
    const detail = `${ids.length} devices and ${pointers.length} pointers are more than ${maxSeriesOfAnswer} series`;
    throw invalidRequest([{ pointer: where === undefined ? "/query/device_id" : "/query/where", detail }]);
  }

  function rangeOf({ from = "P1D", until }: SeriesQuery, { since }: Pick<Asking, "since">) {
    const now = clock.now();
    const earliest = since === undefined ? undefined : startOf(since, now);
    const begin = startOf(from, now);
    return {
      // Canonical timestamps sort as texts.
      from: earliest === undefined || begin > earliest ? begin : earliest,
      until: until === undefined ? now.toISOString() : startOf(until, now),
      ...(earliest !== undefined && { not_before: earliest }),
    };
  }

  /** Reads the series in their order, a few ahead of what is taken. */
  async function* read(
    all: readonly AskedSeries[],
    query: SeriesQuery,
    { principal, caller, since }: Asking,
    within: Within,
  ): AsyncGenerator<AskedSeries & ReadSeries, void, undefined> {
    const { topic, every = "auto", tz = "UTC", fill = false } = query;
    const asked = {
      principal,
      ...(caller !== undefined && { caller }),
      topic,
      ...rangeOf(query, { since }),
      every,
      tz,
      fill,
    };
    const ask = async (one: AskedSeries) => ({
      ...one,
      ...(await within(readMs, (call) => data.readSeries({ ...asked, ...one }, call))),
    });
    const ahead: Promise<AskedSeries & ReadSeries>[] = [];
    for (let at = 0; at < all.length; at++) {
      while (ahead.length < readTogether && at + ahead.length < all.length) {
        const next = ask(all[at + ahead.length] as AskedSeries);
        // Its failure is thrown once its turn has come.
        next.catch(() => undefined);
        ahead.push(next);
      }
      yield (await ahead.shift()) as AskedSeries & ReadSeries;
    }
  }

  return {
    async answer(query: SeriesQuery, asking: Asking, { preferred, call, within }: Answering): Promise<Reply> {
      const { fn = ["avg", "min", "max"], topic } = query;
      const all = await askedSeries(query, asking, call);
      const type = preferred(["application/json", "text/csv"]);
      if (all.length === 0 && type === "application/json") {
        const { every = "auto" } = query;
        return json(JSON.stringify({ every, ...rangeOf(query, {}), fn, partial: false, series: [] }));
      }
      const series = read(all, query, asking, within);
      return type === "text/csv"
        ? stream("text/csv; charset=utf-8; header=present", asCsv(series, topic, fn))
        : stream("application/json", asJson(series, topic, fn));
    },

    listed({ series, left_out }: Listed): Reply {
      return json(
        JSON.stringify(series),
        left_out === 0 ? {} : { headers: { "Left-Out": String(left_out) } },
      );
    },
  };
}

/** The device of a request by a device key, by default the key's. Throws `device_mismatch` for any other. */
function ownDevice(own: string, asked = [own]): string[] {
  if (asked.every((id) => id === own)) return asked;
  const { code, when } = contract.methods.readSeries.errors.device_mismatch;
  throw new ServiceError({ code, reason: "device_mismatch", message: when });
}

async function* asJson(
  all: AsyncIterable<AskedSeries & ReadSeries>,
  topic: string,
  fn: readonly SeriesFunction[],
): AsyncGenerator<string, void, undefined> {
  let isBegun = false;
  for await (const { every, from, until, partial, spans, ...key } of all) {
    const points = spans.map((span) => [
      new Date(span.start).toISOString(),
      ...fn.map((name) => numberOf(span, name)),
    ]);
    const head = JSON.stringify({ every, from, until, fn, partial, series: [] }).slice(0, -2);
    yield (isBegun ? "," : head) + JSON.stringify({ ...key, topic, points });
    isBegun = true;
  }
  yield "]}";
}

/** All series are held: each line has a value of each. */
async function* asCsv(
  all: AsyncIterable<AskedSeries & ReadSeries>,
  topic: string,
  fn: readonly SeriesFunction[],
): AsyncGenerator<string, void, undefined> {
  const names: string[] = [];
  const lines = new Map<number, (number | null)[]>();
  for await (const { device_id, pointer, spans } of all) {
    for (const span of spans) {
      const line = lines.get(span.start) ?? [];
      lines.set(span.start, line);
      for (const [at, name] of fn.entries()) line[names.length + at] = numberOf(span, name);
    }
    names.push(...fn.map((name) => withoutFormulas(`${device_id} ${topic}${pointer} ${name}`)));
  }
  const rows = [...lines]
    .sort(([a], [b]) => a - b)
    .map(([time, values]) => [new Date(time).toISOString(), ...names.map((_, at) => values[at] ?? null)]);
  yield stringify([["time", ...names], ...rows], { record_delimiter: "windows" });
}
