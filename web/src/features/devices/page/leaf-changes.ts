import { isJsonObject, type Json } from "@devmesh/contracts/model/json";
import { pointerToken } from "@devmesh/contracts/model/json-pointer";
import { equalJson } from "./equal-json.ts";

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
