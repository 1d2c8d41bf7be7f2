import type { FetchResponse, MaybeOptionalInit } from "openapi-fetch";
import type { operations, paths } from "./schema.ts";

/** A response that is a success; its body is undefined for 204 alone. */
type SuccessfulAnswer<T> = Extract<T, { readonly error?: never }>;

type PathsWith<M extends PropertyKey> = {
  [P in keyof paths]: paths[P] extends { readonly [K in M]: object } ? P : never;
}[keyof paths];

type Arguments<Init> = object extends Init ? [init?: Init] : [init: Init];

/** Sends a request with a method, by a path of the OpenAPI document. */
type SendByPath<M extends "get" | "post" | "delete"> = <
  P extends PathsWith<M>,
  Init extends MaybeOptionalInit<paths[P], Extract<M, keyof paths[P]>>,
>(
  path: P,
  ...init: undefined extends Init ? [init?: Init] : [init: Init]
) => Promise<
  SuccessfulAnswer<
    FetchResponse<
      Extract<paths[P][Extract<M, keyof paths[P]>], Record<string | number, unknown>>,
      Init,
      `${string}/${string}`
    >
  >
>;

/** Requests by path; a response that is no success is thrown. */
export interface Requests {
  readonly GET: SendByPath<"get">;
  readonly POST: SendByPath<"post">;
  readonly DELETE: SendByPath<"delete">;
}

type JsonContent<R> = R extends { readonly content: { readonly "application/json": infer B } }
  ? B
  : undefined;

type StatusOfSuccess = 200 | 201 | 202 | 204;

/** Body of the success of an operation. */
export type AnswerOf<O extends keyof operations> = {
  [S in keyof operations[O]["responses"] & StatusOfSuccess]: JsonContent<operations[O]["responses"][S]>;
}[keyof operations[O]["responses"] & StatusOfSuccess];

type ArgumentPart<Name extends string, T> = [T] extends [never]
  ? unknown
  : undefined extends T
    ? { readonly [K in Name]?: Exclude<T, undefined> }
    : { readonly [K in Name]: T };

type BodyOf<O extends keyof operations> = operations[O] extends {
  readonly requestBody: { readonly content: { readonly "application/json": infer B } };
}
  ? { readonly body: B }
  : operations[O] extends {
        readonly requestBody?: { readonly content: { readonly "application/json": infer B } };
      }
    ? { readonly body?: B }
    : unknown;

/** Arguments of an operation without those of its path. */
export type ArgumentsOf<O extends keyof operations> = Arguments<
  ArgumentPart<"query", operations[O]["parameters"]["query"]> &
    ArgumentPart<"header", operations[O]["parameters"]["header"]> &
    BodyOf<O> & { readonly signal?: AbortSignal }
>;
