import { pageOf } from "@devmesh/contracts/contract";
import { mesh } from "@devmesh/contracts/mesh";
import { JsonObject, JsonValue } from "@devmesh/contracts/model/json";
import type { ServiceDeclaration } from "@devmesh/contracts/topology";
import { describe, expect, test } from "@jest/globals";
import { z } from "zod";
import { surfaceOf } from "../src/surface.ts";
import { incompatibilities } from "../src/surface-compatibility.ts";
import { type LampContract, lampSurface } from "./lamp.ts";

type Change = readonly [sentence: string, released: LampContract, current: LampContract];
type Refused = readonly [...Change, problem: string];

const problemsOf = (released: LampContract, current: LampContract) =>
  incompatibilities(lampSurface(released), lampSurface(current));

const input = (schema: z.ZodType): LampContract => ({ input: schema });
const output = (schema: z.ZodType): LampContract => ({ output: schema });
const on = z.object({ on: z.boolean() });
const a = z.object({ kind: z.literal("a"), x: z.int() });
const anyA = z.object({ kind: z.literal("a"), x: z.number() });
const b = z.object({ kind: z.literal("b"), y: z.int() });
const named = (id: string, modes: string[]) => on.extend({ mode: z.enum(modes) }).meta({ id });
const tree = (id: string, value: z.ZodType): z.ZodType => {
  const node: z.ZodType = z.object({ value, children: z.lazy(() => z.array(node)) }).meta({ id });
  return node;
};
const withMode = (mode: z.ZodType) => z.object({ on: z.boolean(), mode });

describe("of a method, callers of the released contract do not notice that", () => {
  const changes: readonly Change[] = [
    ["nothing changed", { ...input(on), ...output(on) }, { ...input(on), ...output(on) }],
    ["a method is new", {}, { methods: ["switch", "dim"] }],
    ["an error is new", {}, { errors: { lamp_broken: { code: "unavailable", when: "It is broken." } } }],
    [
      "an error has details now",
      { errors: { lamp_broken: { code: "unavailable", when: "It is broken." } } },
      {
        errors: {
          lamp_broken: { code: "unavailable", when: "It is.", details: z.object({ at: z.string() }) },
        },
      },
    ],
    ["it may take longer", { deadlineMs: 1_000 }, { deadlineMs: 2_000 }],
    ["it may be called twice now", { idempotent: false }, { idempotent: true }],
  ];
  test.each(changes)("%s", (_, released, current) => {
    expect(problemsOf(released, current)).toEqual([]);
  });
});

describe("of a method, callers of the released contract would notice that", () => {
  const broken = { code: "unavailable", when: "It is broken." } as const;
  const changes: readonly Refused[] = [
    ["it is gone", { methods: ["switch", "dim"] }, {}, "dim is gone"],
    ["an error is gone", { errors: { lamp_broken: broken } }, {}, "switch: error lamp_broken is gone"],
    [
      "an error has another code",
      { errors: { lamp_broken: broken } },
      { errors: { lamp_broken: { ...broken, code: "internal" } } },
      "switch: error lamp_broken was unavailable and is internal now",
    ],
    [
      "the details of an error are gone",
      { errors: { lamp_broken: { ...broken, details: on } } },
      { errors: { lamp_broken: broken } },
      "switch: details of lamp_broken are gone",
    ],
    [
      "a member of an error's details is gone",
      { errors: { lamp_broken: { ...broken, details: on } } },
      { errors: { lamp_broken: { ...broken, details: z.object({}) } } },
      "switch: details of lamp_broken/on is gone",
    ],
    [
      "it ends earlier",
      { deadlineMs: 2_000 },
      { deadlineMs: 1_000 },
      "switch: the deadline of 2000 ms became 1000 ms",
    ],
    [
      "it may not be called twice",
      { idempotent: true },
      { idempotent: false },
      "switch: may not be sent twice any more",
    ],
    [
      "it answers no pages",
      output(pageOf(on)),
      output(z.object({ items: z.array(on) })),
      "switch: answers no pages any more",
    ],
  ];
  test.each(changes)("%s", (_, released, current, problem) => {
    expect(problemsOf(released, current)).toContain(problem);
  });
});

/** A schema that accepts less, and one that accepts all of that and more. */
const narrowAndWide: readonly [what: string, narrow: z.ZodType, wide: z.ZodType][] = [
  ["a member that may be left out", on, z.object({ on: z.boolean().optional() })],
  ["a member that may be null", on, z.object({ on: z.boolean().nullable() })],
  ["a further word of an enum", z.enum(["a"]), z.enum(["a", "b"])],
  ["any string for a word", z.literal("a"), z.string()],
  ["a number for an integer", z.int().min(0).max(9), z.number().min(0).max(9)],
  ["a lower minimum", z.int().min(1), z.int().min(0)],
  ["no maximum", z.number().max(9), z.number()],
  ["a shorter string", z.string().min(2), z.string().min(1)],
  ["a longer string", z.string().max(9), z.string().max(10)],
  ["no pattern", z.string().regex(/^a/), z.string()],
  ["no format", z.string().meta({ format: "date" }), z.string()],
  ["no rule", z.string().refine(Boolean, "must hold something"), z.string()],
  ["an array that may be empty", z.array(z.int()).min(1), z.array(z.int())],
  ["a longer array", z.array(z.int()).max(5), z.array(z.int()).max(6)],
  ["an array of more", z.array(z.int()), z.array(z.number())],
  ["a further variant", z.union([z.int(), on]), z.union([z.int(), on, z.string()])],
  ["a further kind", z.discriminatedUnion("kind", [a]), z.discriminatedUnion("kind", [b, a])],
  ["a kind with more", z.discriminatedUnion("kind", [a, b]), z.discriminatedUnion("kind", [anyA, b])],
  ["values of a record", z.record(z.string(), z.int()), z.record(z.string(), z.number())],
  ["any JSON", JsonObject, JsonValue],
  [
    "a union without a rule",
    z.union([on, z.string()]).refine(Boolean, "must shine"),
    z.union([on, z.string()]),
  ],
  [
    "a member deep in a named type",
    z.object({ lamp: named("Lamp1", ["a"]) }),
    z.object({ lamp: named("Lamp2", ["a", "b"]) }),
  ],
  ["a type that refers to itself", tree("Tree1", z.int()), tree("Tree2", z.number())],
];

describe.each(narrowAndWide)("%s", (_, narrow, wide) => {
  test("may be taken by a new release, not given", () => {
    expect(problemsOf(input(narrow), input(wide))).toEqual([]);
    expect(problemsOf(output(narrow), output(wide))).not.toEqual([]);
  });

  test("may be given by an old release, not taken", () => {
    expect(problemsOf(output(wide), output(narrow))).toEqual([]);
    expect(problemsOf(input(wide), input(narrow))).not.toEqual([]);
  });
});

const strict = z.strictObject({ on: z.boolean() });
const loose = z.looseObject({ on: z.boolean() });
const optionalMode = withMode(z.string().optional());

describe("members of an object may change on one side, or on both:", () => {
  test.each<[string, z.ZodType, z.ZodType, taken: boolean, given: boolean]>([
    ["an optional one is new", on, optionalMode, true, true],
    ["a required one is new", on, withMode(z.string()), false, true],
    ["one with a default is new", on, withMode(z.string().default("dim")), true, true],
    ["an optional one is gone", optionalMode, on, false, false],
    [
      "one is new in a strict object",
      strict,
      z.strictObject({ on: z.boolean(), mode: z.string().optional() }),
      true,
      false,
    ],
    ["unknown ones are refused", on, strict, false, true],
    ["unknown ones are refused no more", strict, on, true, true],
    ["unknown ones are kept that were dropped", on, loose, true, true],
    ["unknown ones are kept that were refused", strict, loose, true, false],
    ["unknown ones are dropped that were kept", loose, on, false, true],
    [
      "a record became an object",
      z.record(z.string(), z.number()),
      z.object({ x: z.int().optional() }).catchall(z.number()),
      false,
      false,
    ],
    [
      "a default is new",
      z.object({ on: z.boolean().optional() }),
      z.object({ on: z.boolean().default(true) }),
      true,
      true,
    ],
    [
      "a default is another",
      z.object({ on: z.boolean().default(true) }),
      z.object({ on: z.boolean().default(false) }),
      false,
      true,
    ],
    [
      "a default in a named type is another",
      z.object({ mode: z.string().default("a").meta({ id: "Mode1" }) }),
      z.object({ mode: z.string().default("b").meta({ id: "Mode2" }) }),
      false,
      true,
    ],
    [
      "a default is gone",
      z.object({ on: z.boolean().default(true) }),
      z.object({ on: z.boolean().optional() }),
      false,
      false,
    ],
    [
      "its type has a name now",
      z.object({ lamp: on }),
      z.object({ lamp: on.meta({ id: "Lamp" }) }),
      true,
      true,
    ],
    [
      "another pattern",
      z.object({ id: z.string().regex(/^a/) }),
      z.object({ id: z.string().regex(/^[ab]/) }),
      false,
      false,
    ],
    [
      "another description",
      z.string().meta({ description: "old" }),
      z.string().meta({ description: "new" }),
      true,
      true,
    ],
  ])("%s", (_, released, current, taken, given) => {
    expect(problemsOf(input(released), input(current)).length === 0).toBe(taken);
    expect(problemsOf(output(released), output(current)).length === 0).toBe(given);
  });
});

test("a problem names the method, the side and the member, and what became of it", () => {
  const lamp = (bright: z.ZodType) => z.object({ lamp: z.array(z.object({ bright })) });
  const [before, after] = [lamp(z.int().max(9)), lamp(z.union([z.int().max(8), z.null()]))];
  expect(problemsOf(input(before), input(after))).toEqual(["switch: input/lamp/*/bright maximum 9 became 8"]);
  expect(problemsOf(output(before), output(after))).toEqual([
    "switch: output/lamp/*/bright null is new to readers",
  ]);
});

describe("events and queues", () => {
  const one = { events: { shone: on } };

  test("a further event, and a further member of one, pass", () => {
    expect(problemsOf(one, { events: { shone: withMode(z.string()), dimmed: on } })).toEqual([]);
  });

  test("an event that is gone, or lost a member, does not pass", () => {
    expect(problemsOf(one, {})).toEqual(["event event.lamp.shone.* is gone"]);
    expect(problemsOf(one, { events: { shone: z.object({}) } })).toEqual([
      "event event.lamp.shone.*/on is not always there any more",
      "event event.lamp.shone.*/on is gone",
    ]);
  });

  test("a job must be readable by a consumer of the released contract", () => {
    expect(problemsOf({ queued: on }, { queued: withMode(z.string()) })).toEqual([]);
    expect(problemsOf({ queued: z.enum(["a"]) }, { queued: z.enum(["a", "b"]) })).toEqual([
      'job queue.bulbs "b" is new to readers',
    ]);
    expect(problemsOf({ queued: on }, {})).toEqual([]);
  });

  test("a job of the released contract must still be done", () => {
    expect(problemsOf({ done: on }, { done: withMode(z.string().optional()) })).toEqual([]);
    expect(problemsOf({ done: on }, { done: withMode(z.string()) })).toEqual([
      "job queue.sockets/mode is required now",
    ]);
    expect(problemsOf({ done: on }, {})).toEqual(["job queue.sockets is gone"]);
  });
});

describe("a new version", () => {
  test("may break the methods of the former one, which stand under other subjects", () => {
    expect(
      problemsOf({ methods: ["switch", "dim"], ...input(on) }, { version: 2, ...input(withMode(z.int())) }),
    ).toEqual([]);
  });

  test("may leave out events and queues, but not change what is said under their subjects", () => {
    const released = { events: { shone: on }, done: on };
    expect(problemsOf(released, { version: 2 })).toEqual([]);
    expect(
      problemsOf(released, {
        version: 2,
        events: { shone: z.object({ on: z.string() }) },
        done: withMode(z.int()),
      }),
    ).toEqual([
      "event event.lamp.shone.*/on the type string is new to readers",
      "job queue.sockets/mode is required now",
    ]);
  });

  test("does not come after the next one", () => {
    expect(problemsOf({ version: 2 }, { version: 1 })).toEqual(["version 2 went back to 1"]);
  });
});

describe("what cannot be compared is refused:", () => {
  test.each([
    ["an intersection", z.intersection(z.array(z.int()), z.array(z.int()).min(1))],
    ["a tuple", z.tuple([z.int()])],
    ["a transform that nobody described", z.string().transform(Number)],
    ["a custom type that nobody described", z.custom<string>(() => true)],
    ["a date", z.date()],
    ["a value that never comes", z.never()],
    ["a rule without words", z.string().refine(Boolean)],
  ])("%s cannot stand in a contract", (_, schema) => {
    expect(() => lampSurface(output(z.object({ it: schema })))).toThrow(
      "lamp.switch output cannot be described",
    );
  });
});

test.each(Object.entries<ServiceDeclaration>(mesh))(
  "the surface of %s is compatible with itself",
  (name, declaration) => {
    const surface = surfaceOf(name, declaration);
    if (surface !== null) expect(incompatibilities(surface, surface)).toEqual([]);
  },
);
