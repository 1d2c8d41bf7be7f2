import { isJsonObject, type Json } from "@devmesh/contracts/model/json";
import type { PointerTree } from "@devmesh/contracts/model/pointer-tree";
import type { ViolationList } from "@devmesh/contracts/model/violation";
import { ownMember, pointerInto } from "../json-member.ts";

/**
 * Finds each member of a merge patch that would change `present` outside the pointers: a member that no pointer covers
 * or leads to, a value where a pointer leads further down, an object in the place of a scalar or an array, and a new
 * object without a covered value. The patch may be unchecked: the recursion goes no deeper than the pointers.
 */
export function checkWrite(
  change: Json,
  present: Json | undefined,
  tree: PointerTree,
  pointer: string,
  violations: ViolationList,
): void {
  if (tree.covered || violations.full) return;
  const replacesOthers = present !== undefined && !isJsonObject(present);
  if (!isJsonObject(change) || replacesOthers || (present === undefined && !setsCovered(change, tree))) {
    violations.add(pointer, "is not writable with this key");
    return;
  }
  for (const name of Object.keys(change)) {
    if (violations.full) return;
    const below = tree.members.get(name);
    const member = pointerInto(pointer, name);
    if (below === undefined) violations.add(member, "is not writable with this key");
    else checkWrite(change[name] as Json, ownMember(present ?? {}, name), below, member, violations);
  }
}

/** Whether the change sets at least one covered value. */
function setsCovered(change: Json, { covered, members }: PointerTree): boolean {
  if (covered) return change !== null;
  if (!isJsonObject(change)) return false;
  for (const [name, below] of members) {
    if (Object.hasOwn(change, name) && setsCovered(change[name] as Json, below)) return true;
  }
  return false;
}
