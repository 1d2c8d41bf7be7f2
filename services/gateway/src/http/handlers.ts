import type { Json } from "@devmesh/contracts/model/json";
import type { Principal } from "@devmesh/contracts/principal";
import type { api, Operation } from "@devmesh/contracts/rest/api";
import type { RouteDeclaration } from "@devmesh/contracts/rest/route";
import type { CallContext } from "@devmesh/service-kit/context";
import type { z } from "zod";
import type { Charge } from "../auth/rate-limit.ts";
import type { Caller } from "./exchange.ts";
import type { Reply } from "./reply.ts";

type Parsed<R, P extends "params" | "query"> = R extends { readonly [K in P]: infer S extends z.ZodType }
  ? z.output<S>
  : undefined;

type ParsedBody<R> = R extends {
  readonly body: { readonly schema: infer S extends z.ZodType; readonly optional: infer O };
}
  ? z.output<S> | (O extends true ? undefined : never)
  : undefined;

type CallerOf<R extends RouteDeclaration> = R["auth"] extends readonly (infer K)[]
  ? Extract<Principal, { readonly kind: K }>
  : undefined;

/**
 * Runs work under a time of its own, in milliseconds, instead of the request's; the client's going away ends it too.
 */
export type Within = <T>(timeoutMs: number, work: (call: CallContext) => Promise<T>) => Promise<T>;

/** A request that has passed all checks its route declares. */
interface ApiRequest<R extends RouteDeclaration> {
  readonly params: Parsed<R, "params">;
  readonly query: Parsed<R, "query">;
  readonly body: ParsedBody<R>;
  /** The body as it was received, for an owner that checks it itself; undefined when there was none. */
  readonly receivedBody: Json | undefined;
  readonly principal: CallerOf<R>;
  /** Id of the caller's key; undefined where the route takes none. */
  readonly keyId: string | undefined;
  /** The caller's key, for a route that is a stream. */
  readonly caller: R extends { readonly stream: true | "on_request" } ? Caller : undefined;
  /** For calls of this request: ends with the request's time, and when the client goes away. */
  readonly call: CallContext;
  readonly within: Within;
  readonly charge: Charge;
  /** What a caller without a key is counted on: its address, of IPv6 the network of 64 bits. */
  readonly address: string;
  /** A request header; several of one name are joined by commas. */
  readonly header: (name: string) => string | undefined;
  /** The best of these media types by `Accept`, the first where none or an unknown one is asked for. */
  readonly preferred: <const T extends readonly [string, ...string[]]>(types: T) => T[number];
}

/** What answers each route, by operation id; types come from the declarations. */
export type Handlers<O extends Operation = Operation> = {
  readonly [K in O]: (request: ApiRequest<(typeof api)[K]>) => Promise<Reply>;
};
