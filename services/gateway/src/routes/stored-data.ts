import { defaultLatestLimit, defaultRecordLimit } from "@devmesh/contracts/model/data-record";
import { deviceTopics } from "@devmesh/contracts/mqtt";
import { storedData } from "@devmesh/contracts/rest/stored-data";
import type { Clock } from "@devmesh/service-kit/clock";
import { type Reply, stream, type Within } from "../http/exchange.ts";
import { invalidRequest } from "../http/gateway-errors.ts";
import { answerList } from "../http/paged-list.ts";
import type { GatewayClients, Handlers } from "./handlers.ts";
import { asCsv, asNdjson } from "./record-export.ts";
import { answerRecords, assertRecordLimit, pagesOfAllRecords, recordPages } from "./record-pages.ts";
import { seriesAnswers } from "./series.ts";

/** Stored records (api.md, Stored data). `data` decides which records a key sees. */
export function storedDataHandlers(
  { data, devices }: GatewayClients,
  clock: Clock,
): Handlers<keyof typeof storedData> {
  const series = seriesAnswers({ data, devices }, clock);

  /** The newest record of each topic of a device. */
  function answerLatest(
    path: string,
    device: Parameters<typeof data.countTopics>[0],
    {
      limit = defaultLatestLimit,
      after,
    }: { readonly limit?: number | undefined; readonly after?: string | undefined },
    within: Within,
  ): Promise<Reply> {
    return answerList(
      (page, call) => data.bytes.readLatest({ ...device, limit, ...page }, call),
      path,
      { query: { limit, after }, within },
      () => within(countMs, async (call) => (await data.countTopics(device, call)).count),
    );
  }

  return {
    async queryRecords({ query, principal, keyId: caller, preferred, within }) {
      assertRelative(query.topic, "device_id" in principal ? principal.device_id : query.device_id);
      const type = preferred(["application/json", "application/x-ndjson", "text/csv"]);
      const records = { ...query, principal, caller };
      if (type === "application/json") {
        const { limit = defaultRecordLimit } = query;
        assertRecordLimit(limit);
        const asked = { path: storedData.queryRecords.path, query: { ...query, limit } };
        return answerRecords(data, { ...records, limit }, within, asked);
      }
      const pages = (query.limit === undefined ? pagesOfAllRecords : recordPages)(data, records, within);
      return type === "text/csv"
        ? stream("text/csv; charset=utf-8; header=present", asCsv(pages))
        : stream("application/x-ndjson", asNdjson(pages));
    },

    readSeries: ({ query, principal, keyId, preferred, call, within }) =>
      series.answer(query, { principal, caller: keyId }, { preferred, call, within }),

    async listSeries({ params: { id }, principal, keyId: caller, call }) {
      const [listed] = await Promise.all([
        data.listSeries({ principal, caller, device_id: id }, call),
        devices.readPresence({ id }, call),
      ]);
      return series.listed(listed);
    },

    async listOwnSeries({ principal, keyId: caller, call }) {
      const { device_id } = principal;
      return series.listed(await data.listSeries({ principal, caller, device_id }, call));
    },

    async readLatest({ params: { id }, query, principal, keyId: caller, call, within }) {
      const path = storedData.readLatest.path.replace(":id", id);
      const [latest] = await Promise.all([
        answerLatest(path, { principal, caller, device_id: id }, query, within),
        devices.readPresence({ id }, call),
      ]);
      return latest;
    },

    readOwnLatest: ({ query, principal, keyId: caller, within }) =>
      answerLatest(
        storedData.readOwnLatest.path,
        { principal, caller, device_id: principal.device_id },
        query,
        within,
      ),
  };
}

/** Timeout for counting, in milliseconds. */
const countMs = 5_000;

/** Throws `invalid_request` for a topic as records show it, which would select nothing. */
function assertRelative(topic: string | undefined, deviceId: string | undefined): void {
  if (topic === undefined || deviceId === undefined) return;
  const root = deviceTopics.record(deviceId, "");
  if (!`${topic}/`.startsWith(root)) return;
  throw invalidRequest([{ pointer: "/query/topic", detail: `is relative to \`${root}\`: leave that out` }]);
}
