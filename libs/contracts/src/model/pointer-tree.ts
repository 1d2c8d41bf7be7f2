import { isJsonObject, type Json, type JsonObject } from "./json.ts";
import { membersOf } from "./json-pointer.ts";

/** A set of JSON pointers, arranged by member. */
export interface PointerTree {
  /** A pointer ends here: it covers this value and all below it. */
  readonly covered: boolean;
  readonly members: ReadonlyMap<string, PointerTree>;
}

interface GrowingTree extends PointerTree {
  covered: boolean;
  readonly members: Map<string, GrowingTree>;
}

/** Arranges the pointers of an ACL, to be walked along with a document. */
export function pointerTree(pointers: readonly string[]): PointerTree {
  const root = emptyTree();
  for (const pointer of pointers) {
    let node = root;
    for (const name of membersOf(pointer)) {
      const below = node.members.get(name) ?? emptyTree();
      node.members.set(name, below);
      node = below;
    }
    node.covered = true;
  }
  return root;
}

function emptyTree(): GrowingTree {
  return { covered: false, members: new Map() };
}

/**
 * The part of a value that the pointers cover; undefined when there is none. Arrays are whole values: no pointer leads
 * into one.
 */
export function cutToPointers(value: Json, { covered, members }: PointerTree): Json | undefined {
  if (covered) return value;
  if (!isJsonObject(value)) return undefined;
  const cut: JsonObject = {};
  for (const [name, below] of members) {
    if (!Object.hasOwn(value, name)) continue;
    const part = cutToPointers(value[name] as Json, below);
    if (part !== undefined) cut[name] = part;
  }
  return Object.keys(cut).length === 0 ? undefined : cut;
}
