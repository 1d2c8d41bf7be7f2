import type { mesh } from "@devmesh/contracts/mesh";
import type { Json } from "@devmesh/contracts/model/json";
import type { KeyKind, Principal } from "@devmesh/contracts/principal";
import type { api, Operation } from "@devmesh/contracts/rest/api";
import type { RouteDeclaration } from "@devmesh/contracts/rest/route";
import type { CallContext } from "@devmesh/service-kit/rpc/context";
import type { Clients } from "@devmesh/service-kit/rpc/implementation";
import type { z } from "zod";
import type { Caller, Reply, Upload, Within } from "../http/exchange.ts";

/** The services that the gateway calls, as the routes declare. */
export type GatewayClients = Clients<(typeof mesh)["gateway"]["calls"]>;

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

/** A request that has passed the checks of its route. */
interface ApiRequest<R extends RouteDeclaration> {
  readonly params: Parsed<R, "params">;
  readonly query: Parsed<R, "query">;
  readonly body: ParsedBody<R>;
  /** The unchecked body, for an owner that checks it itself; undefined when there was none. */
  readonly receivedBody: Json | undefined;
  /** The body of a route that takes an upload. */
  readonly upload: R extends { readonly upload: object } ? Upload : undefined;
  readonly method: string;
  readonly principal: CallerOf<R>;
  /** Kind of the caller's key. */
  readonly keyKind: KeyKind | "none";
  /** Id of the caller's key; undefined where the route takes none. */
  readonly keyId: string | undefined;
  /** The caller's key, for a route that is a stream. */
  readonly caller: R extends { readonly stream: true | "on_request" } ? Caller : undefined;
  /** Ends with the request's timeout, and when the client goes away. */
  readonly call: CallContext;
  readonly within: Within;
  /** The client's address; of IPv6 the network of 64 bits. */
  readonly address: string;
  /** A request header; several of one name are joined by commas. */
  readonly header: (name: string) => string | undefined;
  /** The best of these media types by `Accept`, the first where none or an unknown one is asked for. */
  readonly preferred: <const T extends readonly [string, ...string[]]>(types: T) => T[number];
}

/** The handlers of routes by operation id; the types come from the declarations. */
export type Handlers<O extends Operation = Operation> = {
  readonly [K in O]: (request: ApiRequest<(typeof api)[K]>) => Promise<Reply>;
};
