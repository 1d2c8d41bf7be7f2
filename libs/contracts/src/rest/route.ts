import { z } from "zod";
import type { ErrorDeclaration } from "../contract.ts";
import type { JsonObject } from "../model/json.ts";
import type { ChangedKind } from "../model/mesh-change.ts";
import type { ViolationList } from "../model/violation.ts";
import type { KeyKind } from "../principal.ts";
import type { Dependency } from "../topology.ts";

/** One answer of a route. */
export interface Answer {
  readonly description: string;
  readonly json?: z.ZodType;
  /** In its place in the OpenAPI document: generators read each success of an operation as its first one. */
  readonly describedAs?: z.ZodType;
  /** Other media types the caller may ask for with `Accept`, by media type. */
  readonly other?: Readonly<Record<string, z.ZodType>>;
  readonly headers?: Readonly<Record<string, string>>;
}

/** The body that a route takes. */
export interface BodyDeclaration {
  readonly schema: z.ZodType;
  readonly optional: boolean;
  /** Refuses a member that an object has twice, of which JSON.parse keeps the last one; for bodies with a condition. */
  readonly membersOnce?: true;
  /**
   * Finds what the owner refuses beyond the schema. It runs only when the schema refuses the body, so that the
   * caller gets all violations at once.
   */
  readonly checkBesides?: (body: JsonObject, violations: ViolationList) => void;
}

/** A body that is passed on in pieces, as it comes; the handler reads it. */
export interface UploadDeclaration {
  readonly type: "application/octet-stream";
  readonly schema: z.ZodType;
}

/** What some requests of a route cost of the rate of their key, beyond the one token of each request. */
export interface CostDeclaration {
  readonly tokens: number;
  /** Which requests: the subject of a sentence for docs/limits.md. */
  readonly of: string;
  /** Whether a request is one of them, by its parsed query. */
  readonly applies: (query: Readonly<Record<string, unknown>>) => boolean;
}

/** One route of the public API as a value: the gateway validates by it and OpenAPI is generated from it. */
export type RouteDeclaration = AnyRoute & (ReadingRoute | WritingRoute);

interface ReadingRoute {
  readonly method: "get";
  readonly change?: never;
}

interface WritingRoute {
  readonly method: "post" | "delete";
  /** What a request changes, for `GET /mesh/changes`; null where it is not listed, such as a call of a device. */
  readonly change: ChangedKind | null;
}

interface AnyRoute {
  /** In Express form, `:name` for a parameter; whole, prefix included. */
  readonly path: string;
  /** Further paths of the same route, as existing clients call it. Not in OpenAPI. */
  readonly aliases?: readonly string[];
  /** One of `tags` in api.ts. */
  readonly tag: string;
  readonly summary: string;
  readonly description?: string;
  /** Kinds of key that may call it; null for anyone. */
  readonly auth: readonly KeyKind[] | null;
  /**
   * The path holds a secret, by which the handler knows the caller and bounds its rate. The rate of the address is used
   * by wrong ones alone.
   */
  readonly secretPath?: true;
  readonly params?: z.ZodObject;
  /** Reason of the 404 for a value that the schema of a path parameter refuses, from `calls`. Without one: 400. */
  readonly absent?: Readonly<Record<string, string>>;
  /** Values are strings on the wire. A parameter given twice or unknown is refused; a loose object takes any. */
  readonly query?: z.ZodObject;
  /** Parameters whose values never have a blank within: a `+` there is itself, as people type it, and no blank. */
  readonly withoutBlanks?: readonly string[];
  /** Its request headers. They are documented by this; the handler reads and checks them. */
  readonly headers?: z.ZodObject;
  readonly body?: BodyDeclaration;
  /** In place of `body`: bytes of any number. They cost no tokens, since few uploads are taken at one time. */
  readonly upload?: UploadDeclaration;
  /** Takes a single range of bytes (RFC 9110, 14.2). */
  readonly ranges?: true;
  /** Without one, a request costs one token, and its body one for each full 4 KB. */
  readonly cost?: CostDeclaration;
  readonly answers: Readonly<Record<number, Answer>>;
  /** Methods that the handler calls: the gateway's clients, its permissions and the errors in OpenAPI follow. */
  readonly calls: readonly Dependency[];
  /**
   * Goes on until the client leaves: always, by WebSocket or `text/event-stream`; or for a client that accepts
   * `text/event-stream`.
   */
  readonly stream?: true | "on_request";
}

const noMembers = { schema: z.strictObject({}), optional: true } as const;

/** The body that a route checks. A POST that declares none refuses any member (api.md, Conventions). */
export function checkedBodyOf({ method, body, upload }: RouteDeclaration): BodyDeclaration | undefined {
  return body ?? (method === "post" && upload === undefined ? noMembers : undefined);
}

/** The errors that the methods called by a route declare, by reason. */
export function declaredErrors({ calls }: RouteDeclaration): ReadonlyMap<string, ErrorDeclaration> {
  return new Map(
    calls.flatMap(({ contract, methods }) =>
      methods.flatMap((method) => Object.entries(contract.methods[method]?.errors ?? {})),
    ),
  );
}

/** Declares the routes of one table of the spec, by operation id, and keeps their literal types. */
export function defineRoutes<const R extends Readonly<Record<string, RouteDeclaration>>>(routes: R): R {
  return routes;
}

/** Prefix of all paths except those in mails and in older clients. */
const apiPrefix = "/api/v2";

/** Method and path of a route below {@link apiPrefix}. */
export const get = (path: string) => ({ method: "get", path: apiPrefix + path }) as const;
/** Declares a POST, with what it changes. */
export const post = <const C extends ChangedKind | null>(path: string, change: C) =>
  ({ method: "post", path: apiPrefix + path, change }) as const;
/** Declares a DELETE, with what it changes. */
export const remove = <const C extends ChangedKind | null>(path: string, change: C) =>
  ({ method: "delete", path: apiPrefix + path, change }) as const;

/** An optional integer in a query string: digits with an optional minus sign, nothing else. */
export function queryInteger(bounds: { min: number; max: number; default?: number; description: string }) {
  const meta = {
    type: "integer" as const,
    minimum: bounds.min,
    maximum: bounds.max,
    ...(bounds.default !== undefined && { default: bounds.default }),
    description: bounds.description,
  };
  return z
    .string()
    .regex(/^-?\d{1,16}$/, "must be an integer")
    .transform(Number)
    .pipe(z.number().min(bounds.min).max(bounds.max))
    .optional()
    .meta(meta);
}

/** Of a list that is answered in pages: the query, and the header that leads on. */
export const paging = {
  query: {
    limit: queryInteger({
      min: 1,
      max: 100_000,
      description: "Most items in the answer; without it all are streamed.",
    }),
    after: z.string().max(512).optional().meta({ description: "Cursor of the `Link` of the page before." }),
  },
  headers: {
    Link: 'With `limit`: the next page, `rel="next"`; absent on the last page.',
    ETag: "Changes with the answer, which is 304 where `If-None-Match` has it; absent of a list in several pages.",
  },
} as const;

/** Headers of a list in pages that also says how many items there are. */
export const countedPaging = (items: string) =>
  ({ ...paging.headers, "Total-Count": `How many ${items} there are.` }) as const;

/** `true` or `false` in a query string. */
export const QueryBoolean = z
  .string()
  .regex(/^(true|false)$/, "must be true or false")
  .transform((text) => text === "true")
  .meta({ type: "boolean" });
