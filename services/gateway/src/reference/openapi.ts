import { key_invalid } from "@devmesh/contracts/keys";
import { keyNames } from "@devmesh/contracts/principal";
import { api } from "@devmesh/contracts/rest/api";
import { Problem } from "@devmesh/contracts/rest/problem";
import type { RouteDeclaration } from "@devmesh/contracts/rest/route";
import { kitErrors } from "@devmesh/service-kit/errors";
import type { z } from "zod";
import {
  createDocument,
  type ZodOpenApiObject,
  type ZodOpenApiOperationObject,
  type ZodOpenApiPathsObject,
  type ZodOpenApiResponseObject,
} from "zod-openapi";
import { declaredErrors } from "../http/declaration.ts";
import { gatewayErrors } from "../http/gateway-errors.ts";
import { httpStatus } from "../http/http-status.ts";
import { gatewayReasons } from "./error-reference.ts";

export type OpenApiDocument = ReturnType<typeof createDocument>;

const description = `Programmatic management of devices.

Every answer carries \`X-Request-Id\`. Errors are problems after RFC 9457 with a stable \`reason\`;
[all reasons](/docs/errors). In \`errors\` of a problem, a pointer names a member of the body; one that begins with
\`/query/\` or \`/path/\` names a parameter of the URL. Keys go into \`Authorization: Bearer KEY\` or
\`?access_token=KEY\`. Wherever there is a \`GET\` there is a \`HEAD\`.`;

/** The OpenAPI document, from the declarations that requests are checked by. */
export function describeApi(baseUrl = "/"): OpenApiDocument {
  const paths: ZodOpenApiPathsObject = {};
  for (const [operation, route] of Object.entries<RouteDeclaration>(api)) {
    const path = route.path.replaceAll(/:([A-Za-z_]+)/g, "{$1}");
    paths[path] = { ...paths[path], [route.method]: describeRoute(operation, route) };
  }
  const document: ZodOpenApiObject = {
    openapi: "3.1.1",
    info: {
      title: "Devmesh",
      version: "2.0.0",
      description,
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
    },
    servers: [{ url: baseUrl }],
    tags: [...new Set(Object.values(api).map(({ tag }) => tag))].map((name) => ({ name })),
    paths,
    components: {
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
  return createDocument(document, {
    // Any JSON value is the empty schema.
    allowEmptySchema: { custom: true },
    // Answers may gain members within v2, which clients must accept.
    override({ zodSchema: { _zod }, jsonSchema, io }) {
      if (io === "output" && _zod.def.type === "object" && _zod.def.catchall === undefined) {
        delete jsonSchema.additionalProperties;
      }
    },
  });
}

function describeRoute(operation: string, route: RouteDeclaration): ZodOpenApiOperationObject {
  const { auth, params, query, headers, body } = route;
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
      requestBody: { required: !body.optional, content: { "application/json": { schema: body.schema } } },
    }),
    responses: { ...describeAnswers(route), ...describeProblems(route) },
  };
}

const rateHeaders = {
  "X-Request-Id": "The id that logs and traces of this request carry.",
  "RateLimit-Policy": "Size of the caller's bucket and the seconds that fill it.",
  RateLimit: "What is left of it.",
};

function describeAnswers(route: RouteDeclaration): Record<string, ZodOpenApiResponseObject> {
  const answers: Record<string, ZodOpenApiResponseObject> = {};
  for (const [status, { description, json, other, headers }] of Object.entries(route.answers)) {
    const content: Record<string, { schema: z.ZodType }> = {};
    if (json !== undefined) content["application/json"] = { schema: json };
    for (const [type, schema] of Object.entries(other ?? {})) content[type] = { schema };
    answers[status] = {
      description,
      headers: describeHeaders({ ...rateHeaders, ...headers }),
      ...(Object.keys(content).length > 0 && { content }),
    };
  }
  return answers;
}

/** The problems of a route by status, with the reasons that each can have. */
function describeProblems(route: RouteDeclaration): Record<string, ZodOpenApiResponseObject> {
  const reasons = new Map<number, Map<string, string>>();
  const add = (status: number, reason: string, when: string) => {
    const known = reasons.get(status) ?? new Map<string, string>();
    reasons.set(status, known.set(reason, when));
  };
  for (const reason of gatewayReasons(route))
    add(gatewayErrors[reason].status, reason, gatewayErrors[reason].when);
  const { deadline_exceeded, unavailable, internal } = kitErrors;
  for (const [reason, { code, when }] of [
    ...Object.entries(route.auth === null ? {} : { key_invalid }),
    ...declaredErrors(route),
    ...Object.entries({ deadline_exceeded, unavailable, internal }),
  ])
    add(httpStatus(code, reason), reason, when);
  const problems: Record<string, ZodOpenApiResponseObject> = {};
  for (const [status, causes] of [...reasons].sort(([one], [other]) => one - other)) {
    problems[status] = {
      description: [...causes].map(([reason, when]) => `- \`${reason}\`: ${when}`).join("\n"),
      headers: describeHeaders({
        "X-Request-Id": rateHeaders["X-Request-Id"],
        ...(status === 401 && { "WWW-Authenticate": "`Bearer`." }),
        ...((status === 429 || status === 503) && {
          "Retry-After": "Seconds until another try may succeed.",
        }),
      }),
      content: { "application/problem+json": { schema: Problem } },
    };
  }
  return problems;
}

function describeHeaders(headers: Readonly<Record<string, string>>) {
  return Object.fromEntries(
    Object.entries(headers).map(([name, text]) => [
      name,
      { description: text, schema: { type: "string" as const } },
    ]),
  );
}
