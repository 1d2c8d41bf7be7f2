import { isJsonObject, type Json } from "./json.ts";
import { pointerToken } from "./json-pointer.ts";
import { shadowLimits } from "./shadow.ts";
import type { ViolationList } from "./violation.ts";

/** Names that reach an object's prototype in careless code, here or in a client that gets the shadow. */
const forbiddenNames: ReadonlySet<string> = new Set(["__proto__", "constructor", "prototype"]);

/**
 * Checks in a body what the schema of a shadow does not: {@link checkStructure} of each section, and that `online` is
 * not written. The body may break its schema.
 */
export function checkShadowOf({ shadow }: { readonly shadow?: unknown }, violations: ViolationList): void {
  if (!isJsonObject(shadow)) return;
  const { state, tags } = shadow;
  if (isJsonObject(tags)) checkStructure(tags, "/shadow/tags", violations);
  if (!isJsonObject(state)) return;
  const { desired, reported } = state;
  if (isJsonObject(desired)) checkStructure(desired, "/shadow/state/desired", violations);
  if (!isJsonObject(reported)) return;
  checkStructure(reported, "/shadow/state/reported", violations);
  if (Object.hasOwn(reported, "online")) {
    violations.add("/shadow/state/reported/online", "is added from presence and cannot be written");
  }
}

/**
 * Finds levels below the tenth (the section is level 1, arrays count), forbidden names, and numbers that JSON cannot
 * write. It never descends below the limit, so it is safe for any input.
 */
export function checkStructure(section: Json, pointer: string, violations: ViolationList): void {
  check(section, pointer, 1, violations);
}

function check(value: Json, pointer: string, level: number, violations: ViolationList): void {
  if (typeof value === "number" && !Number.isFinite(value)) {
    violations.add(pointer, "is a number out of range");
  }
  if (typeof value !== "object" || value === null || violations.full) return;
  if (level > shadowLimits.depth) {
    violations.add(pointer, `is deeper than ${shadowLimits.depth} levels`);
    return;
  }
  if (Array.isArray(value)) {
    for (const [at, element] of value.entries())
      if (needsCheck(element)) check(element, pointer + pointerToken(at), level + 1, violations);
    return;
  }
  for (const name of Object.keys(value)) {
    if (forbiddenNames.has(name)) violations.add(pointer + pointerToken(name), "is a forbidden name");
    else if (needsCheck(value[name] as Json))
      check(value[name] as Json, pointer + pointerToken(name), level + 1, violations);
  }
}

/** Whether a value can be at fault by itself; a pointer to each of many that cannot would cost more than the check. */
function needsCheck(value: Json): boolean {
  return typeof value === "number" ? !Number.isFinite(value) : typeof value === "object" && value !== null;
}
