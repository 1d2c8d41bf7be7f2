import { pointerToken } from "@devmesh/contracts/model/json-pointer";
import type { Violation } from "@devmesh/contracts/model/violation";
import { invalidRequest } from "./gateway-errors.ts";

/** The parameters of a query string, decoded. */
export type QueryParameters = Readonly<Record<string, string>>;

const none: QueryParameters = Object.freeze(Object.create(null));

/** What stands behind the `?` of a request target; empty where there is none. */
export function queryStringOf(target: string): string {
  const mark = target.indexOf("?");
  return mark < 0 ? "" : target.slice(mark + 1);
}

/**
 * Reads `application/x-www-form-urlencoded` parameters. Throws `invalid_request` for one that is given twice or is
 * not UTF-8; the violation names the parameter, never its value.
 */
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

function queryPointer(name: string): string {
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
