import { expect, test } from "@jest/globals";
import { valueLabelOf } from "../src/model/value-labels.ts";

const tags = {
  labels: ["roof"],
  units: {
    temperature: "°C",
    level: { unit: "%", name: "Fill level" },
    speed: { name: "Wind", unit: 5 },
    "in/temperature#": { unit: "K" },
    "weather#/wind/speed": { unit: "m/s" },
    "odd#/a~1b": "V",
    constructor: "x",
    empty: "",
    list: ["°C"],
    nothing: null,
  },
};

test.each([
  ["a bare value by the last level of its topic", "out/temperature", "", { unit: "°C" }],
  ["a member by its name", "state", "/tank/level", { unit: "%", name: "Fill level" }],
  ["topic and pointer before the name", "weather", "/wind/speed", { unit: "m/s" }],
  ["a topic whose payload is a bare value before the name", "in/temperature", "", { unit: "K" }],
  ["what is well-formed of a label", "weather", "/gust/speed", { name: "Wind" }],
  ["an escaped pointer as it is", "odd", "/a~1b", { unit: "V" }],
  ["a name that every object has, where it is set", "x", "/constructor", { unit: "x" }],
  ["nothing for a name that every object has", "x", "/toString", {}],
  ["nothing for an empty unit", "x", "/empty", {}],
  ["nothing for a list", "x", "/list", {}],
  ["nothing for null", "x", "/nothing", {}],
  ["nothing without a label", "x", "/other", {}],
])("a value's label is %s", (_, topic, pointer, label) => {
  expect(valueLabelOf(tags, { topic, pointer })).toEqual(label);
});

test.each([[{}], [{ units: null }], [{ units: "°C" }], [{ units: ["°C"] }], [{ units: 7 }]])(
  "malformed units %j label nothing",
  (malformed) => {
    expect(valueLabelOf(malformed, { topic: "temperature", pointer: "" })).toEqual({});
  },
);
