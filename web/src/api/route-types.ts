import type { api, Operation } from "@devmesh/contracts/rest/api";
import type { z } from "zod";

type Routes = typeof api;

type Params<R> = R extends { readonly params: infer S extends z.ZodType }
  ? { readonly params: z.output<S> }
  : { readonly params?: never };

/** Parsed values; the URL has them as text. */
type Query<R> = R extends { readonly query: infer S extends z.ZodType }
  ? Partial<z.output<S>> extends z.output<S>
    ? { readonly query?: z.output<S> }
    : { readonly query: z.output<S> }
  : { readonly query?: never };

type Body<R> = R extends {
  readonly body: { readonly schema: infer S extends z.ZodType; readonly optional: infer O };
}
  ? O extends true
    ? { readonly body?: z.input<S> | undefined }
    : { readonly body: z.input<S> }
  : { readonly body?: never };

/** Input of an operation. */
export type RouteInput<O extends Operation> = Params<Routes[O]> &
  Query<Routes[O]> &
  Body<Routes[O]> & {
    readonly signal?: AbortSignal;
    readonly headers?: Readonly<Record<string, string>>;
    /** Sent with a master key, since its answer then has secrets. */
    readonly asMaster?: true;
  };

type Answers<O extends Operation> = Routes[O]["answers"];
type Success<O extends Operation> = Answers<O>[keyof Answers<O>];

/** The parsed body of an operation's success; undefined for none. */
export type CallResult<O extends Operation> =
  Success<O> extends { readonly json: infer S extends z.ZodType } ? z.output<S> : undefined;
