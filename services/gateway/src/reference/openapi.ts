import { CloudEvent } from "@devmesh/contracts/model/cloud-event";
import { keyNames } from "@devmesh/contracts/principal";
import { release } from "@devmesh/contracts/release";
import { api, tags } from "@devmesh/contracts/rest/api";
import { Problem } from "@devmesh/contracts/rest/problem";
import type { RouteDeclaration } from "@devmesh/contracts/rest/route";
import { WebhookHeaders } from "@devmesh/contracts/webhook-requests";
import { z } from "zod";
import {
  createDocument,
  type ZodOpenApiObject,
  type ZodOpenApiOperationObject,
  type ZodOpenApiPathsObject,
  type ZodOpenApiResponseObject,
} from "zod-openapi";
import { newProblem } from "../http/problem.ts";
import { type ProblemSet, problemSets } from "./problem-sets.ts";

export type OpenApiDocument = ReturnType<typeof createDocument>;

const description = `Programmatic management of devices. The version is the release of Devmesh; that of the API is in its paths
(\`/api/v2\`), within which changes only add.

Every answer carries \`X-Request-Id\`. Errors are problems after RFC 9457 with a stable \`reason\`;
[all reasons](/docs/errors). In \`errors\` of a problem, a pointer names a member of the body; one that begins with
\`/query/\` or \`/path/\` names a parameter of the URL. Keys go into \`Authorization: Bearer KEY\` or
\`?access_token=KEY\`. Wherever there is a \`GET\` there is a \`HEAD\`.

Devices speak MQTT: their topics are in [asyncapi.json](/api/v2/asyncapi.json), an AsyncAPI document, which has each event
that webhooks send, too. The form of their requests is in \`webhooks\`.`;

/** The OpenAPI document, from the declarations that requests are checked by. */
export function describeApi(baseUrl = "/"): OpenApiDocument {
  const paths: ZodOpenApiPathsObject = {};
  const problemsOf = describeProblems();
  for (const [operation, route] of Object.entries<RouteDeclaration>(api)) {
    const path = route.path.replaceAll(/:([A-Za-z_]+)/g, "{$1}");
    paths[path] = { ...paths[path], [route.method]: describeRoute(operation, route, problemsOf(operation)) };
  }
  const document: ZodOpenApiObject = {
    openapi: "3.1.1",
    info: {
      title: "Devmesh",
      version: release,
      description,
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
    },
    servers: [{ url: baseUrl }],
    tags: Object.entries({
      ...tags,
      [webhookTag]: "Requests to the URL of a webhook, which its receiver answers.",
    }).map(([name, description]) => ({ name, description })),
    paths,
    webhooks: { event: { post: describeWebhook() } },
    components: {
      schemas: { Problem },
      securitySchemes: {
        bearer: { type: "http", scheme: "bearer", description: "A key in the `Authorization` header." },
        access_token: {
          type: "apiKey",
          in: "query",
          name: "access_token",
          description: "The same key in the URL, for clients that cannot set headers.",
        },
      },
    },
  };
  const described = createDocument(document, {
    // Any JSON value is the empty schema.
    allowEmptySchema: { custom: true, union: true },
    // Answers may gain members within v2, which clients must accept.
    override({ zodSchema: { _zod }, jsonSchema, io }) {
      if (io === "output" && _zod.def.type === "object" && _zod.def.catchall === undefined) {
        delete jsonSchema.additionalProperties;
      }
      joinTexts(jsonSchema);
      leaveOpen(jsonSchema);
      nameWidth(jsonSchema);
      // Go and other languages have no look-around, with which a client fails at each such text.
      if (jsonSchema.pattern?.includes("(?")) delete jsonSchema.pattern;
      // A parameter is checked as a text, but described as what it means.
      if (jsonSchema.type === "integer" || jsonSchema.type === "boolean") delete jsonSchema.pattern;
    },
  });
  return withBareReferences(described) as OpenApiDocument;
}

/** A union of texts is one text: generators make a class of a union. */
function joinTexts(schema: z.core.JSONSchema.BaseSchema): void {
  const members = schema.anyOf ?? [];
  if (members.length < 2 || members.some(({ type }) => type !== "string")) return;
  delete schema.anyOf;
  schema.type = "string";
  const patterns = members.map(({ pattern, enum: words }) => pattern ?? (words && `^(${words.join("|")})$`));
  if (patterns.every((one) => one !== undefined)) schema.pattern = patterns.join("|");
}

/** A union with a list is any value: generators name its class `List<Double>`, which no language takes. */
function leaveOpen(schema: z.core.JSONSchema.BaseSchema): void {
  if (schema.anyOf?.some(({ type }) => type === "array") && schema.anyOf.every(({ type }) => type !== "null"))
    delete schema.anyOf;
}

/** Without a format some generators read numbers of 32 bits, into which no Unix milliseconds fit. */
function nameWidth(schema: z.core.JSONSchema.BaseSchema): void {
  if (schema.type === "number") schema.format = "double";
  if (schema.type === "integer" && (schema.maximum ?? Number.POSITIVE_INFINITY) > 0x7fff_ffff)
    schema.format = "int64";
}

/** Beside a reference only a description stays: other keywords are leftovers of the schema that is referred to. */
function withBareReferences(part: unknown): unknown {
  if (Array.isArray(part)) return part.map(withBareReferences);
  if (typeof part !== "object" || part === null) return part;
  const members = Object.entries(part);
  const kept =
    "$ref" in part ? members.filter(([name]) => name === "$ref" || name === "description") : members;
  return Object.fromEntries(kept.map(([name, member]) => [name, withBareReferences(member)]));
}

type Responses = Record<string, ZodOpenApiResponseObject>;

function describeRoute(
  operation: string,
  route: RouteDeclaration,
  problems: Responses,
): ZodOpenApiOperationObject {
  const { auth, params, query, headers, body, upload } = route;
  const parameters = {
    ...(params && { path: params }),
    ...(query && { query }),
    ...(headers && { header: headers }),
  };
  const needs =
    auth === null ? "No key needed." : `Needs a ${auth.map((kind) => keyNames[kind]).join(" or ")}.`;
  return {
    operationId: operation,
    tags: [route.tag],
    summary: route.summary,
    description: route.description === undefined ? needs : `${route.description}\n\n${needs}`,
    security: auth === null ? [] : [{ bearer: [] }, { access_token: [] }],
    ...(Object.keys(parameters).length > 0 && { requestParams: parameters }),
    ...(body && {
      requestBody: { required: !body.optional, content: { "application/json": describeMedia(body.schema) } },
    }),
    ...(upload && {
      requestBody: { required: true, content: { [upload.type]: describeMedia(upload.schema) } },
    }),
    responses: { ...describeAnswers(route), ...problems },
  };
}

/** Generators put each tag into a file, so requests that the mesh sends cannot share one with those that it answers. */
const webhookTag = "Webhook receiver";

/** A request to the URL of a webhook (api.md, Webhooks). */
function describeWebhook(): ZodOpenApiOperationObject {
  return {
    operationId: "receiveEvents",
    tags: [webhookTag],
    summary: "What happens, sent to a URL",
    description: `Signed as Standard Webhooks says, whose libraries verify it with the secret of the webhook. An event comes at least
once, in no order; records come in the order of storing.`,
    security: [],
    requestParams: {
      header: WebhookHeaders,
    },
    requestBody: {
      required: true,
      content: {
        "application/cloudevents+json": describeMedia(CloudEvent),
        "application/cloudevents-batch+json": describeMedia(z.array(CloudEvent)),
      },
    },
    responses: {
      "2XX": { description: "Delivered. Any other answer, a redirect, or none in 15 s: it is sent again." },
      "410": { description: "The receiver is gone: the webhook is disabled." },
      "429": { description: "With `Retry-After`, as 503: the webhook pauses, for an hour at most." },
    },
  };
}

/** Of the examples. */
const requestId = "4bf92f3577b34da6a3ce929d0e0e4736";

const rateHeaders = {
  "X-Request-Id": "The id that logs and traces of this request carry.",
  "RateLimit-Policy": "Size of the caller's bucket and the seconds that fill it.",
  RateLimit: "What is left of it.",
};

function describeAnswers(route: RouteDeclaration): Responses {
  const answers: Responses = {};
  for (const [status, { description, json, describedAs, other, headers }] of Object.entries(route.answers)) {
    const content: Record<string, ReturnType<typeof describeMedia>> = {};
    if (json !== undefined) content["application/json"] = describeMedia(json, describedAs);
    for (const [type, schema] of Object.entries(other ?? {})) content[type] = describeMedia(schema);
    answers[status] = {
      description,
      headers: describeHeaders({ ...rateHeaders, ...headers }),
      ...(Object.keys(content).length > 0 && { content }),
    };
  }
  return answers;
}

/** A body by its schema; a list gets the example of its items, others have that of their schema. */
function describeMedia(schema: z.ZodType, describedAs?: z.ZodType) {
  if (describedAs !== undefined) return { schema: describedAs, example: schema.meta()?.example };
  if (!(schema instanceof z.ZodArray)) return { schema };
  const item = (schema.element as z.ZodType).meta()?.example;
  return item === undefined ? { schema } : { schema, example: [item] };
}

/** The problems of an operation by status. Those of several operations are components. */
function describeProblems(): (operation: string) => Responses {
  const described = new Map<ProblemSet, ZodOpenApiResponseObject>();
  for (const set of problemSets()) described.set(set, describeProblem(set));
  return (operation) =>
    Object.fromEntries(
      [...described]
        .filter(([{ operations }]) => operations.includes(operation))
        .map(([{ status }, response]) => [String(status), response] as const),
    );
}

function describeProblem({ id, status, reasons }: ProblemSet): ZodOpenApiResponseObject {
  const [first] = reasons;
  return {
    ...(id !== undefined && { id }),
    description: reasons.map(({ reason, when }) => `- \`${reason}\`: ${when}`).join("\n"),
    "x-reasons": reasons.map(({ reason }) => reason),
    headers: describeHeaders({
      "X-Request-Id": rateHeaders["X-Request-Id"],
      ...(status === 401 && { "WWW-Authenticate": "`Bearer`." }),
      ...((status === 429 || status === 503) && {
        "Retry-After": "Seconds until another try may succeed.",
      }),
    }),
    content: {
      "application/problem+json": {
        // By the plain schema a client reads reasons that a later release adds; a generator makes one class of it.
        schema: { $ref: "#/components/schemas/Problem" },
        ...(first && {
          example: newProblem({ status, reason: first.reason, detail: first.when, requestId }),
        }),
      },
    },
  };
}

function describeHeaders(headers: Readonly<Record<string, string>>) {
  return Object.fromEntries(
    Object.entries(headers).map(([name, text]) => [
      name,
      { description: text, schema: { type: "string" as const } },
    ]),
  );
}
