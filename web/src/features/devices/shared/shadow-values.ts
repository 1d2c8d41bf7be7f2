import { isJsonObject, type Json, type JsonObject } from "@devmesh/contracts/model/json";
import { pointerToken } from "@devmesh/contracts/model/json-pointer";
import { equalJson } from "./json-changes.ts";

/** A leaf of a shadow: its path, and its values as compact JSON, null for none. */
export interface ShadowLeaf {
  readonly path: string;
  readonly pointer: string;
  readonly desired: string | null;
  readonly reported: string | null;
  /** It is desired, and not reported so. */
  readonly differs: boolean;
}

/** The leaves of a shadow in the order of the desired state, then those that are only reported. */
export function shadowValues(desired: JsonObject, reported: JsonObject): readonly ShadowLeaf[] {
  const leaves: ShadowLeaf[] = [];
  collect([], desired, reported, leaves);
  return leaves;
}

function collect(
  path: readonly string[],
  desired: Json | undefined,
  reported: Json | undefined,
  into: ShadowLeaf[],
): void {
  if (isJsonObject(desired ?? reported) && (reported === undefined || isJsonObject(reported))) {
    const names = new Set([...Object.keys(desired ?? {}), ...Object.keys(reported ?? {})]);
    for (const name of names)
      collect([...path, name], memberOf(desired, name), memberOf(reported, name), into);
    return;
  }
  into.push({
    path: path.join("."),
    pointer: path.map(pointerToken).join(""),
    desired: desired === undefined ? null : JSON.stringify(desired),
    reported: reported === undefined ? null : JSON.stringify(reported),
    differs: desired !== undefined && (reported === undefined || !equalJson(desired, reported)),
  });
}

function memberOf(value: Json | undefined, name: string): Json | undefined {
  return isJsonObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;
}
