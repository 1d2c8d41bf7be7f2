import { isJsonObject, type Json, type JsonObject } from "@devmesh/contracts/model/json";
import { type ParsedJson, parseJson } from "../elements/parse-json.ts";

/** Parameters of a call as they are typed. */
export interface TypedParams {
  readonly parsed: ParsedJson;
  /** What is wrong with them although they are JSON; null for nothing. */
  readonly wrong: string | null;
  /** They can be sent. */
  readonly ready: boolean;
  /** What is sent; undefined for none. */
  readonly value: JsonObject | Json[] | undefined;
}

/** The parameters that a text says; a blank one says none. */
export function paramsIn(text: string): TypedParams {
  if (text.trim() === "")
    return { parsed: { kind: "value", value: null }, wrong: null, ready: true, value: undefined };
  const parsed = parseJson(text);
  if (parsed.kind === "fault") return { parsed, wrong: null, ready: false, value: undefined };
  if (isJsonObject(parsed.value) || Array.isArray(parsed.value))
    return { parsed, wrong: null, ready: true, value: parsed.value };
  return { parsed, wrong: "Parameters are a JSON object or array.", ready: false, value: undefined };
}
