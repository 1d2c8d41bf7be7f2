import { isJsonObject, type Json } from "@devmesh/contracts/model/json";
import type { PointerTree } from "@devmesh/contracts/model/pointer-tree";
import type { ViolationList } from "@devmesh/contracts/model/violation";
import { ownMember } from "../registry/json-member.ts";
import { pointerInto } from "../registry/json-pointer.ts";

/**
 * Finds each member of a merge patch whose effect on `present` would reach outside the pointers: a member that none of
 * them covers or leads to; null or a value where a pointer leads further down, since that replaces what others own; an
 * object where a scalar or an array stands, for the same reason; and an object that would be made on the way without
 * any covered value in it. Needs no checked patch: it descends no further than the pointers do.
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

/** Whether merging the change into nothing leaves at least one covered value. */
function setsCovered(change: Json, { covered, members }: PointerTree): boolean {
  if (covered) return change !== null;
  if (!isJsonObject(change)) return false;
  for (const [name, below] of members) {
    if (Object.hasOwn(change, name) && setsCovered(change[name] as Json, below)) return true;
  }
  return false;
}
