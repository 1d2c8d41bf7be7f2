import { z } from "zod";
import { data } from "../data.ts";
import { devices } from "../devices.ts";
import { jobs } from "../jobs.ts";
import { FunctionName, QueryName } from "../model/acl.ts";
import { DataRecord, maxRecordLimit, maxSkip } from "../model/data-record.ts";
import { DeviceId } from "../model/device-id.ts";
import { Since } from "../model/duration.ts";
import { Execution } from "../model/execution.ts";
import { JsonObject } from "../model/json.ts";
import { TimestampInput } from "../model/time.ts";
import { rpcBridge } from "../rpc-bridge.ts";
import { defineRoutes, get, post, queryInteger } from "./route.ts";
import { RpcAnswer, RpcParams, WaitingAnswer, waitingRpcQuery } from "./rpc.ts";
import { recordPaging, seriesAsking } from "./stored-data.ts";

const tag = "Device access";

/** The device as its public key sees it: what `acl.read` covers. */
const VisibleDevice = z
  .object({
    id: DeviceId,
    shadow: JsonObject.describe("As much of the shadow as `acl.read` covers."),
  })
  .meta({
    id: "VisibleDevice",
    description: "The device as its public key sees it.",
    example: { id: "pump-1", shadow: { state: { desired: { app: { on: true } } } } },
  });

/** What a device's public key may do, limited by the device's ACL (api.md, Device public key and the ACL). */
export const deviceAccess = defineRoutes({
  readOwnDevice: {
    ...get("/m/device"),
    tag,
    summary: "Read the device, cut by its ACL",
    auth: ["public_key"],
    answers: { 200: { description: "What the ACL lets the key see.", json: VisibleDevice } },
    calls: [{ contract: devices, methods: ["readDevice"] }],
  },
  patchOwnDevice: {
    ...post("/m/device", "device"),
    tag,
    summary: "Change the shadow as far as the ACL allows",
    description: "A body with any member that the ACL does not cover is refused whole.",
    auth: ["public_key"],
    body: {
      schema: JsonObject.meta({
        id: "VisibleDevicePatch",
        description: "A merge patch (RFC 7396) with members that `acl.write` covers.",
        example: { shadow: { state: { desired: { app: { on: false } } } } },
      }),
      optional: false,
    },
    answers: { 200: { description: "The device as the key sees it now.", json: VisibleDevice } },
    calls: [{ contract: devices, methods: ["patchDevice"] }],
  },
  runNamedQuery: {
    ...get("/m/device/data/:name"),
    tag,
    summary: "Run a named query of the device's ACL",
    description: "The caller may narrow the query; a larger `limit` than the query's is clamped to it.",
    auth: ["public_key"],
    params: z.object({ name: QueryName }),
    absent: { name: "query_not_found" },
    query: z.object({
      skip: queryInteger({
        min: -maxSkip,
        max: maxSkip,
        default: 0,
        description: "Records to skip; negative starts that many before the end.",
      }),
      limit: queryInteger({
        min: 0,
        max: Number.MAX_SAFE_INTEGER,
        description: `Clamped to the query's own; at most ${maxRecordLimit} where it has none.`,
      }),
      since: Since.optional().meta({
        description: "Inclusive; a time, or an ISO 8601 duration back from now.",
      }),
      until: TimestampInput.optional().meta({ description: "Exclusive." }),
      after: recordPaging.after,
    }),
    answers: {
      200: { description: "The records.", json: z.array(DataRecord), headers: recordPaging.headers },
    },
    calls: [
      { contract: devices, methods: ["authorize"] },
      { contract: data, methods: ["queryRecords"] },
    ],
  },
  runNamedSeries: {
    ...get("/m/device/series/:name"),
    tag,
    summary: "Read the numbers of a named query of the device's ACL",
    description:
      "At the query's `pointers`. Spans that begin before its `since` are left out; its `limit` and `order` are about records.",
    auth: ["public_key"],
    params: z.object({ name: QueryName }),
    absent: { name: "query_not_found" },
    query: z.object(seriesAsking.query),
    answers: seriesAsking.answers,
    calls: [
      { contract: devices, methods: ["authorizeSeries"] },
      { contract: data, methods: ["readSeries"] },
    ],
  },
  callOwnFunction: {
    ...post("/m/device/rpc/:func", null),
    tag,
    summary: "Call a function that the ACL lists",
    auth: ["public_key"],
    params: z.object({ func: FunctionName }),
    query: waitingRpcQuery("P1D"),
    body: { schema: RpcParams, optional: true },
    answers: { 200: RpcAnswer, 202: WaitingAnswer },
    calls: [
      { contract: devices, methods: ["authorize"] },
      { contract: rpcBridge, methods: ["call"] },
      { contract: jobs, methods: ["createCall"] },
    ],
  },
  readOwnExecution: {
    ...get("/m/device/executions/:id"),
    tag,
    summary: "Read a waiting call of the device",
    description: "Only calls that a public key of the device made.",
    auth: ["public_key"],
    params: z.object({ id: z.string().min(1).max(128).describe("Id of the execution.") }),
    absent: { id: "execution_not_found" },
    answers: { 200: { description: "The execution.", json: Execution } },
    calls: [{ contract: jobs, methods: ["readExecution"] }],
  },
});
