import { pointerToken } from "@devmesh/contracts/model/json-pointer";
import type { Violation } from "@devmesh/contracts/model/violation";
import { invalidRequest } from "./gateway-errors.ts";

export type QueryParameters = Readonly<Record<string, string>>;

const none: QueryParameters = Object.freeze(Object.create(null));

/** The part of a request target after `?`; empty without one. */
export function queryStringOf(target: string): string {
  const mark = target.indexOf("?");
  return mark < 0 ? "" : target.slice(mark + 1);
}

/** Parses `application/x-www-form-urlencoded`. Throws `invalid_request` for a parameter given twice or not in UTF-8. */
export function parseQuery(text: string): QueryParameters {
  if (text === "") return none;
  const parameters: Record<string, string> = Object.create(null);
  const violations: Violation[] = [];
  for (const pair of text.split("&")) {
    if (pair === "") continue;
    const equals = pair.indexOf("=");
    const name = decode(equals < 0 ? pair : pair.slice(0, equals));
    const value = decode(equals < 0 ? "" : pair.slice(equals + 1));
    if (name === undefined) violations.push({ pointer: "/query", detail: "holds a name that is not UTF-8" });
    else if (value === undefined) violations.push({ pointer: queryPointer(name), detail: "must be UTF-8" });
    else if (name in parameters)
      violations.push({ pointer: queryPointer(name), detail: "must be given once" });
    else parameters[name] = value;
  }
  if (violations.length > 0) throw invalidRequest(violations);
  return parameters;
}

/** Pointer to a query parameter in a problem. */
export function queryPointer(name: string): string {
  return `/query${pointerToken(name)}`;
}

function decode(text: string): string | undefined {
  if (!text.includes("%") && !text.includes("+")) return text;
  try {
    return decodeURIComponent(text.replaceAll("+", " "));
  } catch {
    return undefined;
  }
}
