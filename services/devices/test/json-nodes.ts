import type { Json, JsonObject } from "@devmesh/contracts/model/json";
import fc from "fast-check";

/**
 * A JSON object seen as a flat set of nodes, path by path: the second, independent way in which tests state what
 * holds for shadows. A path is its member names, as JSON text; arrays and scalars are leaves.
 */
export type Nodes = Map<string, Node>;
type Node = { readonly kind: "object" } | { readonly kind: "leaf"; readonly value: Json };

/** Names from the root down. */
export type Path = readonly string[];

/** A path as the key of a map. */
export const pathText = (path: Path) => JSON.stringify(path);
/** The path that {@link pathText} wrote. */
export const pathOf = (text: string) => JSON.parse(text) as string[];

/** All nodes of an object but its root. */
export function nodesOf(root: JsonObject): Nodes {
  const nodes: Nodes = new Map();
  const queue: { path: Path; value: Json }[] = Object.entries(root).map(([name, value]) => ({
    path: [name],
    value,
  }));
  for (const { path, value } of queue) {
    if (value === null || typeof value !== "object" || Array.isArray(value)) {
      nodes.set(pathText(path), { kind: "leaf", value });
      continue;
    }
    nodes.set(pathText(path), { kind: "object" });
    for (const [name, below] of Object.entries(value)) queue.push({ path: [...path, name], value: below });
  }
  return nodes;
}

/** The object that has these nodes, and those above them. */
export function objectOf(nodes: Nodes): JsonObject {
  const root: JsonObject = {};
  const shortestFirst = [...nodes].map(([text, node]) => ({ path: pathOf(text), node }));
  shortestFirst.sort((one, other) => one.path.length - other.path.length);
  for (const { path, node } of shortestFirst) {
    let at = root;
    for (const name of path.slice(0, -1)) {
      if (!Object.hasOwn(at, name)) at[name] = {};
      at = at[name] as JsonObject;
    }
    const name = path.at(-1) ?? "";
    if (node.kind === "leaf") at[name] = node.value;
    else if (!Object.hasOwn(at, name)) at[name] = {};
  }
  return root;
}

/** Whether `text` is at or below `above`. */
export function isWithin(text: string, above: string): boolean {
  const path = pathOf(text);
  const top = pathOf(above);
  return path.length >= top.length && top.every((name, at) => path[at] === name);
}

/** JSON text in which the order of members is always the same. */
export function canonical(value: Json): string {
  return JSON.stringify(value, (_name, member: Json) =>
    member !== null && typeof member === "object" && !Array.isArray(member)
      ? Object.fromEntries(Object.entries(member).sort(([one], [other]) => (one < other ? -1 : 1)))
      : member,
  );
}

/** Few names, so that two objects often meet in one; some are what every object inherits. */
const names = fc.constantFrom("a", "b", "c", "", "toString", "0", "x/y~");

const { object } = fc.letrec<{ tree: Json; object: JsonObject }>((tie) => ({
  tree: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    fc.constantFrom<Json>(0, 1, -0.5, "", "x", true, false),
    fc.constant(null),
    fc.array(fc.constantFrom<Json>(null, 1, { a: null, b: [1] }, { b: [1], a: null }), { maxLength: 3 }),
    tie("object"),
  ),
  object: fc.dictionary(names, tie("tree"), { maxKeys: 4, noNullPrototype: true }),
}));

/** Merge patches: nulls anywhere. */
export const anyPatch: fc.Arbitrary<JsonObject> = object;

/** Objects as they can be stored: null occurs inside arrays only. */
export const anyDocument: fc.Arbitrary<JsonObject> = object.map((value) => withoutNulls(value));

/** Pointers into such objects. */
export const anyPath: fc.Arbitrary<Path> = fc.array(names, { minLength: 1, maxLength: 3 });

function withoutNulls(value: JsonObject): JsonObject {
  const kept = [...nodesOf(value)].filter(([, node]) => node.kind === "object" || node.value !== null);
  return objectOf(new Map(kept));
}
