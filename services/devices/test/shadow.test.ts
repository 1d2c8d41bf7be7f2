import type { Json, JsonObject } from "@devmesh/contracts/model/json";
import { type ShadowPatch, shadowLimits } from "@devmesh/contracts/model/shadow";
import { checkStructure } from "@devmesh/contracts/model/shadow-structure";
import { ViolationList } from "@devmesh/contracts/model/violation";
import { describe, expect, test } from "@jest/globals";
import fc from "fast-check";
import { applyPatch, checkSectionSizes, mergePatch, writesShadow } from "../src/shadow/apply-patch.ts";
import { deltaMetadata, deltaOf, describeDelta, describeShadow } from "../src/shadow/describe-shadow.ts";
import { emptyShadow, type StoredShadow } from "../src/shadow/stored-shadow.ts";
import {
  anyDocument,
  anyPatch,
  canonical,
  isWithin,
  type Nodes,
  nodesOf,
  objectOf,
  pathOf,
  pathText,
} from "./json-nodes.ts";

/** RFC 7396 over sets of paths: parents first, each node of the patch clears and sets what is at its path. */
function mergeNodes(nodes: Nodes, times: Map<string, number>, patch: JsonObject, now: number): void {
  const changes = [...nodesOf(patch)].sort(([one], [other]) => pathOf(one).length - pathOf(other).length);
  for (const [path, change] of changes) {
    if (change.kind === "object" && nodes.get(path)?.kind === "object") continue;
    for (const below of [...nodes.keys()].filter((text) => isWithin(text, path))) {
      nodes.delete(below);
      times.delete(below);
    }
    if (change.kind === "leaf" && change.value === null) continue;
    nodes.set(path, change);
    if (change.kind === "leaf") times.set(path, now);
  }
}

function metadataOf(times: Map<string, number>): JsonObject {
  const leaves = [...times].map(
    ([path, timestamp]) => [path, { kind: "leaf", value: { timestamp } }] as const,
  );
  return objectOf(new Map(leaves));
}

/** The delta over sets of paths: leaves that differ, and objects in whose place a leaf is reported. */
function deltaNodes(desired: Nodes, reported: Nodes): Nodes {
  return new Map(
    [...desired].filter(([path, wanted]) => {
      const present = reported.get(path);
      if (wanted.kind === "object") return present?.kind === "leaf";
      return present?.kind !== "leaf" || canonical(present.value) !== canonical(wanted.value);
    }),
  );
}

const merge = (shadow: StoredShadow, patch: ShadowPatch, at = 5) => applyPatch(shadow, patch, at);
const withState = (desired: JsonObject, reported: JsonObject) =>
  merge(emptyShadow(0), { state: { desired, reported } });

describe("the arithmetic of shadows, against a second statement of its rules", () => {
  test("any row of writes gives the state, the metadata and the version that the rules say", () => {
    const write = fc.record(
      {
        desired: fc.option(anyPatch, { freq: 8 }),
        reported: fc.option(anyPatch, { freq: 8 }),
        tags: fc.option(anyPatch, { freq: 8 }),
      },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(fc.array(write, { maxLength: 6 }), (writes) => {
        let shadow = emptyShadow(0);
        const model = {
          desired: { nodes: new Map() as Nodes, times: new Map<string, number>() },
          reported: { nodes: new Map() as Nodes, times: new Map<string, number>() },
          tags: { nodes: new Map() as Nodes, times: new Map<string, number>() },
        };
        let version = 0;
        let timestamp = 0;
        for (const [at, { desired, reported, tags }] of writes.entries()) {
          const state = {
            ...(desired === undefined ? {} : { desired }),
            ...(reported === undefined ? {} : { reported }),
          };
          const patch: ShadowPatch = { state, ...(tags === undefined ? {} : { tags }) };
          if (!writesShadow(patch)) continue;
          shadow = merge(shadow, patch, at + 10);
          version++;
          timestamp = at + 10;
          for (const [section, change] of Object.entries({ desired, reported, tags })) {
            const { nodes, times } = model[section as keyof typeof model];
            if (change === null) {
              nodes.clear();
              times.clear();
            } else if (change !== undefined) mergeNodes(nodes, times, change, at + 10);
          }
        }
        expect(shadow).toEqual({
          desired: objectOf(model.desired.nodes),
          reported: objectOf(model.reported.nodes),
          tags: objectOf(model.tags.nodes),
          metadata: { desired: metadataOf(model.desired.times), reported: metadataOf(model.reported.times) },
          version,
          timestamp,
        });
      }),
      { numRuns: 1_000 },
    );
  });

  test("any delta is what the rules say, with the metadata of its leaves", () => {
    fc.assert(
      fc.property(anyDocument, anyDocument, (desired, reported) => {
        const expected = deltaNodes(nodesOf(desired), nodesOf(reported));
        expect(deltaOf(desired, reported) ?? {}).toEqual(objectOf(expected));
        const times = new Map([...nodesOf(desired)].map(([path], at) => [path, at] as const));
        const leafTimes = (nodes: Nodes) =>
          new Map([...times].filter(([path]) => nodes.get(path)?.kind === "leaf"));
        const metadata = deltaMetadata(objectOf(expected), metadataOf(leafTimes(nodesOf(desired))));
        expect(metadata).toEqual(metadataOf(leafTimes(expected)));
      }),
      { numRuns: 1_000 },
    );
  });

  test("a device that merges the delta into what it reports is left with no delta", () => {
    fc.assert(
      fc.property(anyDocument, anyDocument, (desired, reported) => {
        expect(deltaOf(desired, mergePatch(reported, deltaOf(desired, reported) ?? {}))).toBeUndefined();
      }),
      { numRuns: 500 },
    );
  });

  test("a merge changes neither what it is given nor what the patch does not name", () => {
    fc.assert(
      fc.property(anyDocument, anyPatch, (document, patch) => {
        const before = [JSON.stringify(document), JSON.stringify(patch)];
        const merged = mergePatch(document, patch);
        expect([JSON.stringify(document), JSON.stringify(patch)]).toEqual(before);
        for (const [name, value] of Object.entries(document)) {
          if (!Object.hasOwn(patch, name)) expect(merged[name]).toBe(value);
        }
      }),
    );
  });
});

describe("merging", () => {
  /** The examples of RFC 7396, appendix A, whose document and patch are objects. */
  const examples: [JsonObject, JsonObject, JsonObject][] = [
    [{ a: "b" }, { a: "c" }, { a: "c" }],
    [{ a: "b" }, { b: "c" }, { a: "b", b: "c" }],
    [{ a: "b" }, { a: null }, {}],
    [{ a: "b", b: "c" }, { a: null }, { b: "c" }],
    [{ a: ["b"] }, { a: "c" }, { a: "c" }],
    [{ a: "c" }, { a: ["b"] }, { a: ["b"] }],
    [{ a: { b: "c" } }, { a: { b: "d", c: null } }, { a: { b: "d" } }],
    [{ a: [{ b: "c" }] }, { a: [1] }, { a: [1] }],
    [{ e: null }, { a: 1 }, { e: null, a: 1 }],
    [{}, { a: { bb: { ccc: null } } }, { a: { bb: {} } }],
  ];
  test.each(examples)("%j with %j gives %j", (document, patch, merged) => {
    expect(mergePatch(document, patch)).toEqual(merged);
  });

  test("null empties a section", () => {
    const shadow = withState({ a: 1 }, { b: 2 });
    expect(merge(shadow, { state: { desired: null } })).toMatchObject({
      desired: {},
      reported: { b: 2 },
      version: 2,
    });
  });

  test("a write that changes no value steps version and times all the same", () => {
    const again = merge(withState({ a: 1 }, {}), { state: { desired: { a: 1 } } }, 9);
    expect(again).toMatchObject({ version: 2, timestamp: 9, metadata: { desired: { a: { timestamp: 9 } } } });
    expect(merge(again, { state: { desired: {} } }, 10)).toMatchObject({ version: 3, timestamp: 10 });
  });

  test("a patch that names no section is no write", () => {
    expect([{}, { version: 3 }, { state: {} }].map((patch) => writesShadow(patch))).toEqual([
      false,
      false,
      false,
    ]);
    expect(writesShadow({ state: { desired: {} } })).toBe(true);
    expect(writesShadow({ tags: null })).toBe(true);
  });

  test("a member named like one that every object inherits is an ordinary member", () => {
    const shadow = withState({ toString: { valueOf: 1 } }, { hasOwnProperty: 2 });
    expect(shadow.desired).toEqual({ toString: { valueOf: 1 } });
    expect(deltaOf({ toString: {} }, {})).toBeUndefined();
    expect(deltaOf({ valueOf: 1 }, {})).toEqual({ valueOf: 1 });
  });
});

describe("reading", () => {
  test("a shadow shows presence in reported, and only there", () => {
    const shown = describeShadow(withState({}, { app: 1 }), false);
    expect(shown.state).toEqual({ desired: {}, reported: { app: 1, online: false } });
    expect(shown.metadata.reported).toEqual({ app: { timestamp: 5 } });
    expect(shown.version).toBe(1);
  });

  test("the delta for the device is empty when nothing differs, never missing", () => {
    expect(describeDelta(withState({ a: 1 }, { a: 1 }))).toEqual({
      state: {},
      metadata: {},
      version: 1,
      timestamp: 5,
    });
    expect(describeDelta(withState({ a: 1, b: [1] }, { a: 1, c: 2 }))).toEqual({
      state: { b: [1] },
      metadata: { b: { timestamp: 5 } },
      version: 1,
      timestamp: 5,
    });
  });

  const deltas: [JsonObject, JsonObject, JsonObject | undefined][] = [
    [{ a: {} }, {}, undefined],
    [{ a: { b: {} } }, {}, undefined],
    [{ a: {} }, { a: { x: 1 } }, undefined],
    [{ a: {} }, { a: 5 }, { a: {} }],
    [{ a: { b: {} } }, { a: [] }, { a: {} }],
    [{ a: { b: 1, c: {} } }, {}, { a: { b: 1 } }],
    [{ a: [1, 2] }, { a: [2, 1] }, { a: [1, 2] }],
    [{ a: [{ x: 1, y: 2 }] }, { a: [{ y: 2, x: 1 }] }, undefined],
    [{ a: [] }, { a: {} }, { a: [] }],
    [{ a: "1" }, { a: 1 }, { a: "1" }],
    [{ a: 0 }, { a: false }, { a: 0 }],
  ];
  test.each(deltas)("the delta of %j against %j is %j", (desired, reported, delta) => {
    expect(deltaOf(desired, reported)).toEqual(delta);
  });
});

describe("limits", () => {
  const structure = (section: Json) => {
    const violations = new ViolationList();
    checkStructure(section, "/s", violations);
    return violations.list;
  };
  const nested = (levels: number, wrap: (inner: Json) => Json): Json => {
    let value: Json = 1;
    for (let level = 0; level < levels; level++) value = wrap(value);
    return value;
  };

  test("ten levels are allowed and eleven are not, objects and arrays alike; scalars are no level", () => {
    expect(structure(nested(10, (a) => ({ a })))).toEqual([]);
    expect(structure({ a: nested(9, (a) => [a]) })).toEqual([]);
    const deep = structure(nested(11, (a) => ({ a })));
    expect(deep).toEqual([{ pointer: `/s${"/a".repeat(10)}`, detail: "is deeper than 10 levels" }]);
    expect(structure({ a: nested(10, (a) => [a]) })).toHaveLength(1);
  });

  test("a hundred thousand levels are refused without ado", () => {
    const text = `{"a":${"[".repeat(100_000)}${"]".repeat(100_000)}}`;
    expect(structure(JSON.parse(text))).toHaveLength(1);
  });

  test("names that reach a prototype are refused with a pointer to each, in arrays too", () => {
    const text = '{"__proto__":{"x":1},"a":[{"constructor":1},[{"b/~":{"prototype":null}}]],"proto":1}';
    expect(structure(JSON.parse(text)).map(({ pointer }) => pointer)).toEqual([
      "/s/__proto__",
      "/s/a/0/constructor",
      "/s/a/1/0/b~1~0/prototype",
    ]);
  });

  test("a number that JSON cannot write is refused", () => {
    expect(structure(JSON.parse('{"a":[1e400]}'))).toEqual([
      { pointer: "/s/a/0", detail: "is a number out of range" },
    ]);
  });

  test("as many violations are kept as fit into an answer", () => {
    const many = JSON.parse(`[${Array.from({ length: 9_999 }, () => '{"__proto__":1}').join()}]`);
    expect(structure(many)).toHaveLength(500);
    const long = structure({ ["x".repeat(300_000)]: { prototype: 1 } });
    expect(long[0]?.pointer.length).toBeLessThan(1_100);
  });

  const sizes = (shadow: StoredShadow, patch: ShadowPatch) => {
    const violations = new ViolationList();
    checkSectionSizes(merge(shadow, patch), patch, violations);
    return violations.pointers;
  };

  test.each([
    ["desired", shadowLimits.desiredBytes],
    ["reported", shadowLimits.reportedBytes],
  ] as const)("%s holds exactly its bytes of the merged document in UTF-8", (section, limit) => {
    // `{"a":"…","b":1}`, two bytes a character.
    const filled = "ü".repeat((limit - '{"a":"","b":1}'.length) / 2);
    const shadow = merge(emptyShadow(0), { state: { [section]: { a: filled } } });
    expect(sizes(shadow, { state: { [section]: { b: 1 } } })).toEqual([]);
    expect(sizes(shadow, { state: { [section]: { b: 10 } } })).toEqual([`/shadow/state/${section}`]);
  });

  test("tags hold 8 KB, and what the patch does not name is not weighed", () => {
    const full = { t: "x".repeat(shadowLimits.tagsBytes - '{"t":""}'.length) };
    expect(sizes(emptyShadow(0), { tags: full })).toEqual([]);
    expect(sizes(emptyShadow(0), { tags: { ...full, u: 1 } })).toEqual(["/shadow/tags"]);
    const over = { ...emptyShadow(0), tags: { t: "x".repeat(9_000) } };
    expect(sizes(over, { state: { desired: { a: 1 } } })).toEqual([]);
  });

  test("the second statement of the rules turns nodes into the object they came from", () => {
    fc.assert(fc.property(anyDocument, (document) => expect(objectOf(nodesOf(document))).toEqual(document)));
    expect(nodesOf({ a: { b: [1] } }).get(pathText(["a", "b"]))).toEqual({ kind: "leaf", value: [1] });
  });
});
