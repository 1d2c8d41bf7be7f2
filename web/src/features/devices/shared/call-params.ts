import { isJsonObject, type Json, type JsonObject } from "@devmesh/contracts/model/json";
import { describeFault, parseJson } from "../../../components/parse-json.ts";

/**
 * The parameters of a call in a text field: what is sent (undefined for none), and the error in the text (null for
 * none).
 */
export interface TypedParams {
  readonly value: JsonObject | Json[] | undefined;
  readonly error: string | null;
}

/** Reads the parameters of a call; a blank text has none. */
export function paramsIn(text: string): TypedParams {
  if (text.trim() === "") return { value: undefined, error: null };
  const parsed = parseJson(text);
  if (parsed.kind === "fault") return { value: undefined, error: describeFault(parsed.fault) };
  if (isJsonObject(parsed.value) || Array.isArray(parsed.value)) return { value: parsed.value, error: null };
  return { value: undefined, error: "Parameters are a JSON object or array." };
}
