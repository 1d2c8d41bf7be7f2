import type { Operation, Parameter } from "./openapi-document.ts";

/** What somebody has filled in to try an operation. */
export interface RequestDraft {
  /** By {@link fieldOf}; what is empty is not sent. */
  readonly values: Readonly<Record<string, string>>;
  /** The media type to ask for; null to leave that to the server. */
  readonly accept: string | null;
  /** JSON; blank for no body. */
  readonly body: string;
}

/** A request as it is sent, without the key. */
export interface TriedRequest {
  readonly method: string;
  /** Path and query. */
  readonly address: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | null;
  /** Whether the key goes along. */
  readonly needsKey: boolean;
}

/** Where the value of a parameter stands in a draft. */
export function fieldOf({ in: place, name }: Pick<Parameter, "in" | "name">): string {
  return `${place} ${name}`;
}

/** The parameters that must be given and are not. */
export function missingParameters(operation: Operation, { values }: RequestDraft): Parameter[] {
  return operation.parameters.filter(
    (parameter) => parameter.required && (values[fieldOf(parameter)] ?? "") === "",
  );
}

/** The media types that a success can be asked for in, the first being the usual one. */
export function mediaTypes({ responses }: Operation): string[] {
  const successes = Object.entries(responses).filter(([status]) => status.startsWith("2"));
  return [...new Set(successes.flatMap(([, { content }]) => Object.keys(content)))];
}

/** The request that a draft makes. */
export function requestOf(operation: Operation, { values, accept, body }: RequestDraft): TriedRequest {
  const { method, parameters, requestBody, security } = operation;
  const given = parameters
    .map((parameter) => ({ ...parameter, value: values[fieldOf(parameter)] ?? "" }))
    .filter(({ value, required }) => value !== "" || required);
  const path = operation.path.replace(/\{([^}]+)\}/g, (_match, name: string) =>
    encodeURIComponent(values[fieldOf({ in: "path", name })] ?? ""),
  );
  const inQuery = given.filter((parameter) => parameter.in === "query");
  const query = new URLSearchParams(inQuery.map(({ name, value }) => [name, value]));
  const inHeaders = given.filter((parameter) => parameter.in === "header");
  const sent = requestBody !== undefined && body.trim() !== "" ? body : null;
  return {
    method,
    address: query.size > 0 ? `${path}?${query}` : path,
    headers: {
      // Whoever does not say gets JSON.
      ...(accept !== null && accept !== "application/json" && { Accept: accept }),
      ...(sent !== null && { "Content-Type": "application/json" }),
      ...Object.fromEntries(inHeaders.map(({ name, value }) => [name, value])),
    },
    body: sent,
    needsKey: security === undefined || security.length > 0,
  };
}

/** Whether an operation destroys something, so that it is asked for again before it is tried. */
export function destroys({ method, operationId }: Operation): boolean {
  return method === "DELETE" || operationId.startsWith("rotate");
}
