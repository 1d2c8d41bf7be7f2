import { expect, test } from "@jest/globals";
import { Acl, defaultAcl, FunctionName, NamedQuery, ShadowPointer, TopicFilter } from "../src/model/acl.ts";

const accepts = (schema: { safeParse(value: unknown): { success: boolean } }, value: unknown) =>
  schema.safeParse(value).success;

test.each(["temp", "temp/#", "#", "+/x", "a//b", "+"])("%p is a topic filter", (filter) => {
  expect(accepts(TopicFilter, filter)).toBe(true);
});
test.each(["", "a#", "#/a", "a+/b", "a/b+", "a\0"])("%j is none", (filter) => {
  expect(accepts(TopicFilter, filter)).toBe(false);
});

test.each(["/state/reported/app", "/", "/a~1b", "/a~0b"])("%p points into the shadow", (pointer) => {
  expect(accepts(ShadowPointer, pointer)).toBe(true);
});
test.each(["", "state", "/a~2", "/a~"])("%p does not", (pointer) => {
  expect(accepts(ShadowPointer, pointer)).toBe(false);
});

test.each(["Sys.GetInfo", "sum", "a:b-c_d", "x".repeat(128)])("%p is a function", (name) => {
  expect(accepts(FunctionName, name)).toBe(true);
});
test.each(["", "a/b", "a b", "ä", "x".repeat(129), "a*"])("%p is none", (name) => {
  expect(accepts(FunctionName, name)).toBe(false);
});

test("what an ACL leaves out grants nothing, and unknown members are refused", () => {
  expect(Acl.parse({})).toEqual({ read: [], write: [], rpc: [], queries: {} });
  expect(accepts(Acl, { reed: [] })).toBe(false);
  expect(Acl.parse(defaultAcl)).toEqual(defaultAcl);
});

test("a named query holds a topic and bounds within those of the API", () => {
  expect(accepts(NamedQuery, { topic: "temp/#", limit: 5000, order: "desc", since: "PT24H" })).toBe(true);
  expect(accepts(NamedQuery, { limit: 5 })).toBe(false);
  expect(accepts(NamedQuery, { topic: "a", limit: 5001 })).toBe(false);
  expect(accepts(NamedQuery, { topic: "a", since: "yesterday" })).toBe(false);
});

test("a query named __proto__ is refused, not left out", () => {
  const parsed = Acl.safeParse(JSON.parse('{"queries":{"__proto__":{"topic":"a"}}}'));
  expect(parsed.error?.issues.map(({ path }) => path)).toEqual([["queries", "__proto__"]]);
});

test("too many queries are one violation, and none of them is checked", () => {
  const queries = Object.fromEntries(Array.from({ length: 101 }, (_, at) => [`q${at}`, { topic: "" }]));
  const parsed = Acl.safeParse({ queries });
  expect(parsed.error?.issues.map(({ path, message }) => [path, message])).toEqual([
    [["queries"], "must hold at most 100 queries"],
  ]);
});
