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
const named = (id: string) => on.refine(Boolean, "must be a lamp").meta({ id });
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

describe("what callers send stays accepted when", () => {
  const changes: readonly Change[] = [
    ["an optional member is new", input(on), input(withMode(z.string().optional()))],
    ["a member with a default is new", input(on), input(withMode(z.string().default("dim")))],
    ["a member may be left out", input(on), input(z.object({ on: z.boolean().optional() }))],
    ["a member may be null", input(on), input(z.object({ on: z.boolean().nullable() }))],
    ["an enum has a further word", input(z.enum(["a", "b"])), input(z.enum(["a", "b", "c"]))],
    ["a word became any string", input(z.literal("a")), input(z.string())],
    ["a word became a string that may be as long", input(z.literal("abc")), input(z.string().min(3).max(3))],
    ["a word became a pattern that it matches", input(z.literal("abc")), input(z.string().regex(/^[a-c]+$/))],
    ["an integer became a number", input(z.int()), input(z.number())],
    ["bounds are wider", input(z.int().min(1).max(9)), input(z.int().min(0).max(10))],
    ["a bound is gone", input(z.string().max(9)), input(z.string())],
    ["a pattern is gone", input(z.string().regex(/^a/)), input(z.string())],
    ["a format is gone", input(z.iso.date()), input(z.string())],
    ["a rule is gone", input(z.string().refine(Boolean, "must hold something")), input(z.string())],
    ["an array may be longer", input(z.array(z.int()).max(5)), input(z.array(z.int()).max(6))],
    ["what an array holds is wider", input(z.array(z.int())), input(z.array(z.number()))],
    [
      "a union has a further variant",
      input(z.union([z.int(), on])),
      input(z.union([z.int(), on, z.string()])),
    ],
    [
      "a variant with a further kind is new",
      input(z.discriminatedUnion("kind", [z.object({ kind: z.literal("a"), x: z.int() })])),
      input(
        z.discriminatedUnion("kind", [
          z.object({ kind: z.literal("b"), y: z.int() }),
          z.object({ kind: z.literal("a"), x: z.int() }),
        ]),
      ),
    ],
    ["a strict object became lenient", input(z.strictObject({ on: z.boolean() })), input(on)],
    ["any member is carried on that was dropped", input(on), input(z.looseObject({ on: z.boolean() }))],
    [
      "values of a record are wider",
      input(z.record(z.string(), z.int())),
      input(z.record(z.string(), z.number())),
    ],
    [
      "names of a record are wider",
      input(z.record(z.string().max(3), z.int())),
      input(z.record(z.string(), z.int())),
    ],
    ["an object became any JSON", input(JsonObject), input(JsonValue)],
    [
      "a default is new",
      input(z.object({ on: z.boolean().optional() })),
      input(z.object({ on: z.boolean().default(true) })),
    ],
    [
      "a description changed",
      input(z.string().meta({ description: "old" })),
      input(z.string().meta({ description: "new" })),
    ],
    [
      "a type has a name now",
      input(z.object({ lamp: on })),
      input(z.object({ lamp: on.meta({ id: "Lamp" }) })),
    ],
  ];
  test.each(changes)("%s", (_, released, current) => {
    expect(problemsOf(released, current)).toEqual([]);
  });
});

describe("what callers send would be refused or mean something else when", () => {
  const changes: readonly Refused[] = [
    ["a member is gone", input(withMode(z.string().optional())), input(on), "/mode is gone"],
    [
      "an optional member is required",
      input(withMode(z.string().optional())),
      input(withMode(z.string())),
      "/mode is required now",
    ],
    ["a required member is new", input(on), input(withMode(z.string())), "/mode is required now"],
    [
      "a member may not be null",
      input(z.object({ on: z.boolean().nullable() })),
      input(on),
      "/on null is accepted no more",
    ],
    [
      "another type is wanted",
      input(z.object({ on: z.string() })),
      input(on),
      "/on a string is accepted no more",
    ],
    ["a number must be an integer", input(z.number()), input(z.int()), ' type "number" became "integer"'],
    ["an enum lost a word", input(z.enum(["a", "b"])), input(z.enum(["a"])), ' "b" is accepted no more'],
    [
      "any string became some words",
      input(z.string()),
      input(z.enum(["a"])),
      " a string is accepted no more",
    ],
    [
      "a word does not match a new pattern",
      input(z.literal("abc")),
      input(z.string().regex(/^x/)),
      ' "abc" is accepted no more',
    ],
    ["a minimum is higher", input(z.int().min(1)), input(z.int().min(2)), " minimum 1 became 2"],
    ["a maximum is new", input(z.number()), input(z.number().max(5)), " maximum nothing became 5"],
    [
      "an exclusive bound is narrower",
      input(z.number().gt(1)),
      input(z.number().gt(2)),
      " exclusiveMinimum 1 became 2",
    ],
    [
      "a number must be a multiple",
      input(z.number()),
      input(z.number().multipleOf(2)),
      " multipleOf nothing became 2",
    ],
    ["a string must be longer", input(z.string()), input(z.string().min(1)), " minLength nothing became 1"],
    ["a string must be shorter", input(z.string().max(9)), input(z.string().max(8)), " maxLength 9 became 8"],
    ["a pattern is new", input(z.string()), input(z.string().regex(/^a/)), " must match ^a now"],
    [
      "a pattern is another",
      input(z.string().regex(/^a/)),
      input(z.string().regex(/^[ab]/)),
      " must match ^[ab] now",
    ],
    [
      "a second pattern is new",
      input(z.string().regex(/^a/)),
      input(z.string().regex(/^a/).regex(/b$/)),
      " must match b$ now",
    ],
    ["a format is new", input(z.string()), input(z.iso.date()), ' format nothing became "date"'],
    [
      "a rule is new",
      input(z.string()),
      input(z.string().refine(Boolean, "must hold something")),
      ' is refused now by the rule "must hold something"',
    ],
    [
      "an array must be shorter",
      input(z.array(z.int()).max(5)),
      input(z.array(z.int()).max(4)),
      " maxItems 5 became 4",
    ],
    [
      "an array must hold one",
      input(z.array(z.int())),
      input(z.array(z.int()).min(1)),
      " minItems nothing became 1",
    ],
    [
      "what an array holds is narrower",
      input(z.array(z.number())),
      input(z.array(z.int())),
      '/* type "number" became "integer"',
    ],
    [
      "a union lost a variant",
      input(z.union([z.int(), z.string()])),
      input(z.int()),
      " a string is accepted no more",
    ],
    [
      "a kind of a union is gone",
      input(
        z.discriminatedUnion("kind", [
          z.object({ kind: z.literal("a"), x: z.int() }),
          z.object({ kind: z.literal("b"), x: z.int() }),
        ]),
      ),
      input(z.discriminatedUnion("kind", [z.object({ kind: z.literal("a"), x: z.int() })])),
      ' an object with kind "b" is accepted no more',
    ],
    [
      "a member of one kind is narrower",
      input(
        z.discriminatedUnion("kind", [
          z.object({ kind: z.literal("a"), x: z.number() }),
          z.object({ kind: z.literal("b") }),
        ]),
      ),
      input(
        z.discriminatedUnion("kind", [
          z.object({ kind: z.literal("a"), x: z.int() }),
          z.object({ kind: z.literal("b") }),
        ]),
      ),
      '/x type "number" became "integer"',
    ],
    [
      "unknown members are refused",
      input(on),
      input(z.strictObject({ on: z.boolean() })),
      " members that are not declared are refused now",
    ],
    [
      "members carried on are dropped",
      input(JsonObject),
      input(z.object({})),
      " members that are not declared are dropped now",
    ],
    [
      "values of a record are narrower",
      input(z.record(z.string(), z.number())),
      input(z.record(z.string(), z.int())),
      '/* type "number" became "integer"',
    ],
    [
      "names of a record are narrower",
      input(z.record(z.string(), z.int())),
      input(z.record(z.string().max(3), z.int())),
      "/* as a name: maxLength nothing became 3",
    ],
    [
      "a member of a record got a type of its own",
      input(z.record(z.string(), z.number())),
      input(z.object({ x: z.int().optional() }).catchall(z.number())),
      '/x type "number" became "integer"',
    ],
    ["any JSON became an object", input(JsonValue), input(JsonObject), " any value is accepted no more"],
    [
      "a default is another",
      input(z.object({ on: z.boolean().default(true) })),
      input(z.object({ on: z.boolean().default(false) })),
      "/on left out it meant true and means false now",
    ],
    [
      "a default is gone",
      input(z.object({ on: z.boolean().default(true) })),
      input(z.object({ on: z.boolean().optional() })),
      "/on left out it meant true and means nothing now",
    ],
    [
      "a default inside a named type is another",
      input(z.object({ mode: z.string().default("a").meta({ id: "Mode1" }) })),
      input(z.object({ mode: z.string().default("b").meta({ id: "Mode2" }) })),
      '/mode left out it meant "a" and means "b" now',
    ],
    [
      "a union or a named type got a rule",
      input(z.object({ lamp: z.union([on.meta({ id: "Lamp3" }), z.string()]) })),
      input(
        z.object({ lamp: z.union([on.meta({ id: "Lamp4" }), z.string()]).refine(Boolean, "must shine") }),
      ),
      '/lamp is refused now by the rule "must shine"',
    ],
    [
      "an object with members became a record of shorter names",
      input(z.object({ bright: z.int() })),
      input(z.record(z.string().max(3), z.int())),
      '/* as a name: "bright" is accepted no more',
    ],
    [
      "a member deep inside a named type is narrower",
      input(z.object({ lamp: on.extend({ mode: z.enum(["a", "b"]) }).meta({ id: "Lamp1" }) })),
      input(z.object({ lamp: on.extend({ mode: z.enum(["a"]) }).meta({ id: "Lamp2" }) })),
      '/lamp/mode "b" is accepted no more',
    ],
  ];
  test.each(changes)("%s", (_, released, current, problem) => {
    expect(problemsOf(released, current).join("\n")).toContain(`switch: input${problem}`);
  });
});

describe("what readers get stays within what they knew when", () => {
  const changes: readonly Change[] = [
    ["a member is new", output(on), output(withMode(z.string()))],
    [
      "an optional member is always there",
      output(withMode(z.string().optional())),
      output(withMode(z.string())),
    ],
    ["a member is null no more", output(z.object({ on: z.boolean().nullable() })), output(on)],
    ["an enum lost a word", output(z.enum(["a", "b"])), output(z.enum(["a"]))],
    ["any string became some words", output(z.string()), output(z.enum(["a", "b"]))],
    ["a number became an integer", output(z.number()), output(z.int())],
    ["bounds are narrower", output(z.int().min(0).max(9)), output(z.int().min(1).max(8))],
    ["a pattern is new", output(z.string()), output(z.string().regex(/^a/))],
    ["a second pattern is new", output(z.string().regex(/^a/)), output(z.string().regex(/^a/).regex(/b$/))],
    ["a strict object became lenient", output(z.strictObject({ on: z.boolean() })), output(on)],
    ["a lenient object became strict", output(on), output(z.strictObject({ on: z.boolean() }))],
    ["a rule is new", output(z.string()), output(z.string().refine(Boolean, "must hold something"))],
    ["a union lost a variant", output(z.union([z.int(), z.string()])), output(z.int())],
    ["a record became an object", output(z.record(z.string(), z.boolean())), output(on)],
    ["a named type got a rule", output(named("Lamp5")), output(named("Lamp6").refine(Boolean, "must shine"))],
    ["any JSON became an object", output(JsonValue), output(JsonObject)],
    ["any object became one with members", output(JsonObject), output(on)],
    [
      "a member with a default is always there",
      output(z.object({ on: z.boolean().default(true) })),
      output(on),
    ],
    [
      "a member of a strict object is null no more",
      output(z.strictObject({ on: z.boolean().nullable() })),
      output(z.strictObject({ on: z.boolean() })),
    ],
  ];
  test.each(changes)("%s", (_, released, current) => {
    expect(problemsOf(released, current)).toEqual([]);
  });
});

describe("what readers get would be more than they knew when", () => {
  const changes: readonly Refused[] = [
    ["a member is gone", output(withMode(z.string().optional())), output(on), "/mode is gone"],
    [
      "a member is not always there",
      output(on),
      output(z.object({ on: z.boolean().optional() })),
      "/on is not always there any more",
    ],
    [
      "a member may be null",
      output(on),
      output(z.object({ on: z.boolean().nullable() })),
      "/on null is new to readers",
    ],
    [
      "a member has another type",
      output(on),
      output(z.object({ on: z.string() })),
      "/on a string is new to readers",
    ],
    [
      "an enum has a further word",
      output(z.enum(["a"])),
      output(z.enum(["a", "b"])),
      ' "b" is new to readers',
    ],
    [
      "some words became any string",
      output(z.enum(["a"])),
      output(z.string()),
      " a string is new to readers",
    ],
    [
      "an integer became a number",
      output(z.int().min(0).max(9)),
      output(z.number().min(0).max(9)),
      ' type "integer" became "number"',
    ],
    ["a maximum is higher", output(z.int().max(9)), output(z.int().max(10)), " maximum 9 became 10"],
    ["a bound is gone", output(z.string().max(9)), output(z.string()), " maxLength 9 became nothing"],
    [
      "a pattern is another",
      output(z.string().regex(/^a/)),
      output(z.string().regex(/^b/)),
      " does not surely match ^a any more",
    ],
    [
      "a format is gone",
      output(z.string().meta({ format: "date" })),
      output(z.string()),
      ' format "date" became nothing',
    ],
    [
      "a rule is kept no more",
      output(z.string().refine(Boolean, "must hold something")),
      output(z.string()),
      ' is promised no more: "must hold something"',
    ],
    [
      "a union has a further variant",
      output(z.int()),
      output(z.union([z.int(), z.string()])),
      " a string is new to readers",
    ],
    [
      "a member is new where readers are strict",
      output(z.strictObject({ on: z.boolean() })),
      output(z.strictObject({ on: z.boolean(), mode: z.string() })),
      "/mode is new, and readers refuse members they do not know",
    ],
    [
      "any member may come where readers are strict",
      output(z.strictObject({ on: z.boolean() })),
      output(z.looseObject({ on: z.boolean() })),
      " may hold any member now, and readers refuse those they do not know",
    ],
    ["an object became any JSON", output(JsonObject), output(JsonValue), " any value is new to readers"],
    [
      "values of a record are wider",
      output(z.record(z.string(), z.int().min(0).max(9))),
      output(z.record(z.string(), z.int().min(0).max(10))),
      "/* maximum 9 became 10",
    ],
    [
      "items of a page lost a member",
      output(pageOf(withMode(z.string()))),
      output(pageOf(on)),
      "/items/*/mode is not always there any more",
    ],
  ];
  test.each(changes)("%s", (_, released, current, problem) => {
    expect(problemsOf(released, current).join("\n")).toContain(`switch: output${problem}`);
  });
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
      "event event.lamp.shone.*/on a string is new to readers",
      "job queue.sockets/mode is required now",
    ]);
  });

  test("does not come after the next one", () => {
    expect(problemsOf({ version: 2 }, { version: 1 })).toEqual(["version 2 went back to 1"]);
  });
});

describe("what cannot be compared is no compatible change:", () => {
  test("an intersection of what is no object", () => {
    const both = z.intersection(z.array(z.int()), z.array(z.int()).min(1));
    expect(problemsOf(input(both), input(both))).toEqual([
      expect.stringContaining("input cannot be compared"),
    ]);
  });

  test.each([
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
