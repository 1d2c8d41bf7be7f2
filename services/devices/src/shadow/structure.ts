import type { Json } from "@devmesh/contracts/model/json";
import { shadowLimits } from "@devmesh/contracts/model/shadow";
import type { Findings } from "@devmesh/service-kit/findings";
import { pointerInto } from "../json-pointer.ts";

/** Names that reach an object's prototype in careless code, here or in a client that gets the shadow. */
const forbiddenNames: ReadonlySet<string> = new Set(["__proto__", "constructor", "prototype"]);

/**
 * Finds what no section of a shadow may hold, in arrays too: more than ten levels (the section itself is level 1,
 * arrays count, scalars are no level), members with a forbidden name, and numbers that JSON cannot write. It never
 * descends further than the limit, so it is the first to walk through what a caller sent.
 */
export function checkStructure(section: Json, pointer: string, findings: Findings): void {
  check(section, pointer, 1, findings);
}

function check(value: Json, pointer: string, level: number, findings: Findings): void {
  if (typeof value === "number" && !Number.isFinite(value)) {
    findings.add(pointer, "is a number out of range");
  }
  if (typeof value !== "object" || value === null || findings.full) return;
  if (level > shadowLimits.depth) {
    findings.add(pointer, `is deeper than ${shadowLimits.depth} levels`);
    return;
  }
  if (Array.isArray(value)) {
    for (const [at, element] of value.entries())
      check(element, pointerInto(pointer, at), level + 1, findings);
    return;
  }
  for (const name of Object.keys(value)) {
    const member = pointerInto(pointer, name);
    if (forbiddenNames.has(name)) findings.add(member, "is a forbidden name");
    else check(value[name] as Json, member, level + 1, findings);
  }
}
