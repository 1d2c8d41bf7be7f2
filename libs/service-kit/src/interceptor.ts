import type { ContractDeclaration } from "@devmesh/contracts/contract";
import type { Logger } from "./logger.ts";
import type { TraceContext } from "./trace.ts";

/** A call as it arrived: nothing of it has been checked yet. */
export interface IncomingCall {
  readonly contract: ContractDeclaration;
  readonly method: string;
  /** The input, JSON in UTF-8. */
  readonly payload: Uint8Array;
  /** Value of a header; undefined when it is missing or empty. */
  header(name: string): string | undefined;
  readonly log: Logger;
  /** Set by the trace interceptor; a call without one starts its own trace. */
  readonly trace?: TraceContext;
}

/** Answers a call with JSON; throws `ServiceError` only. */
export type CallHandler = (call: IncomingCall) => Promise<string>;

/** Wraps the whole of a call: parsing, deadline, handler and check of the answer are all inside. */
export type Interceptor = (next: CallHandler) => CallHandler;
