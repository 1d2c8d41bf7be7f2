import type { ContractDeclaration } from "@devmesh/contracts/contract";
import type { Dependency } from "@devmesh/contracts/topology";
import type { z } from "zod";
import type { CallContext, Context, MethodName } from "./context.ts";

/** What a caller hands to a method: the input before parsing. */
export type CallInput<C extends ContractDeclaration, M extends MethodName<C>> = z.input<
  C["methods"][M]["in"]
>;

/** What a caller gets: the output after parsing. */
export type CallOutput<C extends ContractDeclaration, M extends MethodName<C>> = z.output<
  C["methods"][M]["out"]
>;

/** What a service writes to serve a contract; nothing else may be answered and no method may be missing. */
export type Implementation<C extends ContractDeclaration> = {
  readonly [M in MethodName<C>]: (
    input: z.output<C["methods"][M]["in"]>,
    context: Context<C, M>,
  ) => Promise<z.input<C["methods"][M]["out"]>>;
};

/** The methods of a contract that a caller declared, as functions. They throw `ServiceError` only. */
export type Client<C extends ContractDeclaration, M extends MethodName<C> = MethodName<C>> = {
  readonly [K in M]: (input: CallInput<C, K>, call: CallContext) => Promise<CallOutput<C, K>>;
} & {
  /** Its methods, answering the owner's JSON as it came, neither parsed nor checked again (ADR 19). */
  readonly bytes: { readonly [K in M]: (input: CallInput<C, K>, call: CallContext) => Promise<Uint8Array> };
};

/** The clients of all that a service declares to call, by the name of the service called. */
export type Clients<D extends readonly Dependency[]> = {
  readonly [K in D[number] as K["contract"]["service"]]: Client<
    K["contract"],
    K["methods"][number] & MethodName<K["contract"]>
  >;
};
