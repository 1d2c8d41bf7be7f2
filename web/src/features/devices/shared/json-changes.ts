import { isJsonObject, type Json, type JsonObject } from "@devmesh/contracts/model/json";
import { pointerToken } from "@devmesh/contracts/model/json-pointer";

/** Whether two JSON values are the same; the order of members means nothing. */
export function equalJson(one: Json, other: Json): boolean {
  if (one === other) return true;
  if (Array.isArray(one) && Array.isArray(other)) {
    return one.length === other.length && one.every((item, at) => equalJson(item, other[at] as Json));
  }
  if (!isJsonObject(one) || !isJsonObject(other)) return false;
  const names = Object.keys(one);
  return (
    names.length === Object.keys(other).length &&
    names.every((name) => Object.hasOwn(other, name) && equalJson(one[name] as Json, other[name] as Json))
  );
}

/**
 * The RFC 7396 merge patch that makes `after` out of `before`; `{}` when they are the same. What such a patch cannot
 * express is a member that is null: it comes out as absent.
 */
export function mergePatchBetween(before: JsonObject, after: JsonObject): JsonObject {
  const patch: [string, Json][] = [];
  for (const name of Object.keys(before)) if (!Object.hasOwn(after, name)) patch.push([name, null]);
  for (const [name, value] of Object.entries(after)) {
    const held: Json | undefined = Object.hasOwn(before, name) ? before[name] : undefined;
    if (held !== undefined && equalJson(held, value)) continue;
    patch.push([name, isJsonObject(held) && isJsonObject(value) ? mergePatchBetween(held, value) : value]);
  }
  // Keeps a member named `__proto__`, so that the server refuses it instead of it being lost here.
  return Object.fromEntries(patch);
}

/** A leaf with different values from two writers. Values are compact JSON, null for none. */
export interface LeafChange {
  /** JSON pointer; empty for the whole value. */
  readonly pointer: string;
  /** What both began with. */
  readonly before: string | null;
  readonly theirs: string | null;
  readonly mine: string | null;
  /** Both writers changed it, to different values. */
  readonly clash: boolean;
}

/** The leaves at which `theirs` and `mine`, both made from `before`, are not the same. */
export function leafChanges(before: Json, theirs: Json, mine: Json): LeafChange[] {
  const changes: LeafChange[] = [];
  collect("", before, theirs, mine, changes);
  return changes;
}

type Leaf = Json | undefined;

function collect(pointer: string, before: Leaf, theirs: Leaf, mine: Leaf, into: LeafChange[]): void {
  if (same(theirs, mine)) return;
  const sides = [theirs, mine].filter((side) => side !== undefined);
  if (sides.every(isJsonObject) && sides.some((side) => Object.keys(side).length > 0)) {
    for (const name of new Set(sides.flatMap((side) => Object.keys(side)))) {
      const below = pointer + pointerToken(name);
      collect(below, member(before, name), member(theirs, name), member(mine, name), into);
    }
    return;
  }
  into.push({
    pointer,
    before: compact(before),
    theirs: compact(theirs),
    mine: compact(mine),
    clash: !same(before, theirs) && !same(before, mine),
  });
}

function member(of: Leaf, name: string): Leaf {
  return isJsonObject(of) && Object.hasOwn(of, name) ? of[name] : undefined;
}

function same(one: Leaf, other: Leaf): boolean {
  return one === other || (one !== undefined && other !== undefined && equalJson(one, other));
}

function compact(value: Leaf): string | null {
  return value === undefined ? null : JSON.stringify(value);
}
