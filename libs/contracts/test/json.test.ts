import { expect, test } from "@jest/globals";
import { repeatedMember } from "../src/model/json.ts";

test.each([
  ['{"a":1,"a":2}', ["a"]],
  ['{"a":{"b":[0,{"c":1,"d":{},"c":1}]}}', ["a", "b", "1", "c"]],
  ['{"a":[{"x":1},{"x":2}],"a":1}', ["a"]],
  ['{"a":1, "\\u0061" :2}', ["a"]],
  ['{"a\\"b":1,"a\\"b":1}', ['a"b']],
  ['[[],{"":1,"":1}]', ["1", ""]],
  ['{"__proto__":1,"__proto__":1}', ["__proto__"]],
])("finds the member that %s has twice", (text, path) => {
  expect(repeatedMember(text)).toEqual(path);
});

test.each([
  "1",
  '"a"',
  "{}",
  '{"a":"a","b":["a","a",{"a":"a"}],"c":{"a":1}}',
  '{"a":"{\\"a\\":1,\\"a\\":2}","b":"}","c":","}',
  '{"a":[1,2],"b":{"a":[]},"c":null}',
])("finds none in %s", (text) => {
  expect(repeatedMember(text)).toBeNull();
});
