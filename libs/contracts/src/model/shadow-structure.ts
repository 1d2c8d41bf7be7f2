import { isJsonObject, type Json } from "./json.ts";
import { pointerToken } from "./json-pointer.ts";
import { shadowLimits } from "./shadow.ts";

/** Names that reach an object's prototype in careless code, here or in a client that gets the shadow. */
const forbiddenNames: ReadonlySet<string> = new Set(["__proto__", "constructor", "prototype"]);

/** Takes what is wrong in a body, by JSON pointers into it; once it is full, looking on is pointless. */
export interface Faults {
  add(pointer: string, detail: string): void;
  readonly full: boolean;
}

/**
 * Finds in a body with a shadow what no shadow may hold and the schema of the body does not say: a structure that
 * {@link checkStructure} refuses, and presence, which is not written. Needs no checked body; what should be an object
 * and is none is left to the schema.
 */
export function checkShadowOf({ shadow }: { readonly shadow?: unknown }, faults: Faults): void {
  if (!isJsonObject(shadow)) return;
  const { state, tags } = shadow;
  if (isJsonObject(tags)) checkStructure(tags, "/shadow/tags", faults);
  if (!isJsonObject(state)) return;
  const { desired, reported } = state;
  if (isJsonObject(desired)) checkStructure(desired, "/shadow/state/desired", faults);
  if (!isJsonObject(reported)) return;
  checkStructure(reported, "/shadow/state/reported", faults);
  if (Object.hasOwn(reported, "online")) {
    faults.add("/shadow/state/reported/online", "is added from presence and cannot be written");
  }
}

/**
 * Finds what no section of a shadow may hold, in arrays too: more than ten levels (the section itself is level 1,
 * arrays count, scalars are no level), members with a forbidden name, and numbers that JSON cannot write. It never
 * descends further than the limit, so it is the first to walk through what a caller sent.
 */
export function checkStructure(section: Json, pointer: string, faults: Faults): void {
  check(section, pointer, 1, faults);
}

function check(value: Json, pointer: string, level: number, faults: Faults): void {
  if (typeof value === "number" && !Number.isFinite(value)) {
    faults.add(pointer, "is a number out of range");
  }
  if (typeof value !== "object" || value === null || faults.full) return;
  if (level > shadowLimits.depth) {
    faults.add(pointer, `is deeper than ${shadowLimits.depth} levels`);
    return;
  }
  if (Array.isArray(value)) {
    for (const [at, element] of value.entries())
      if (needsCheck(element)) check(element, pointer + pointerToken(at), level + 1, faults);
    return;
  }
  for (const name of Object.keys(value)) {
    if (forbiddenNames.has(name)) faults.add(pointer + pointerToken(name), "is a forbidden name");
    else if (needsCheck(value[name] as Json))
      check(value[name] as Json, pointer + pointerToken(name), level + 1, faults);
  }
}

/** Whether a value can be at fault by itself; a pointer to each of many that cannot would cost more than the check. */
function needsCheck(value: Json): boolean {
  return typeof value === "number" ? !Number.isFinite(value) : typeof value === "object" && value !== null;
}
