import { isJsonObject, type Json } from "@devmesh/contracts/model/json";

/** What a mesh made up, such as ids and secrets, by the names under which recorded requests say it. */
export type MadeUp = Map<string, Json>;

/**
 * A recorded request with what this mesh made up in the places of `{{name}}`. Throws for a name that nothing was kept
 * under.
 */
export function filledIn(recorded: Json, madeUp: ReadonlyMap<string, Json>): Json {
  if (Array.isArray(recorded)) return recorded.map((element) => filledIn(element, madeUp));
  if (isJsonObject(recorded)) {
    return Object.fromEntries(
      Object.entries(recorded).map(([name, member]) => [name, filledIn(member, madeUp)]),
    );
  }
  const name = typeof recorded === "string" ? /^\{\{(\w+)\}\}$/.exec(recorded)?.[1] : undefined;
  if (name === undefined) return recorded;
  const value = madeUp.get(name);
  if (value === undefined) throw new Error(`no earlier answer told ${name}`);
  return value;
}

/** The value at a JSON pointer without escapes; undefined where there is none. */
export function valueAt(value: Json, pointer: string): Json | undefined {
  let at: Json | undefined = value;
  for (const name of pointer.split("/").slice(1)) {
    if (Array.isArray(at)) at = at[Number(name)];
    else at = at !== undefined && isJsonObject(at) ? at[name] : undefined;
  }
  return at;
}
