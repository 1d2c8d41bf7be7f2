import { describe, expect, test } from "@jest/globals";
import { encodeRequest, parseReply } from "../src/calls/frame.ts";

const reply = (text: string) => parseReply(Buffer.from(text));

describe("a frame to a device", () => {
  const frame = { id: 7, src: "pump/r/one", method: "Sys.GetInfo" };
  const text = (params?: object) =>
    encodeRequest({ ...frame, ...(params ? { params: params as [] } : {}) }, 4096)?.toString();

  test("has no params where the caller gave none", () => {
    expect(text()).toBe('{"id":7,"src":"pump/r/one","method":"Sys.GetInfo"}');
  });

  test("carries an empty object and an empty array as they are", () => {
    expect(text({})).toContain('"params":{}');
    expect(text([])).toContain('"params":[]');
  });

  test("may be as long as its limit in bytes, and no longer", () => {
    const empty = encodeRequest({ ...frame, params: "" }, 4096)?.length ?? 0;
    const fill = "é".repeat((4096 - empty) / 2);
    const slack = "x".repeat((4096 - empty) % 2);
    expect(encodeRequest({ ...frame, params: fill + slack }, 4096)).toHaveLength(4096);
    expect(encodeRequest({ ...frame, params: `${fill}${slack}x` }, 4096)).toBeNull();
  });
});

describe("a reply", () => {
  test.each([
    ["null", null],
    ["false", false],
    ["0", 0],
    ['""', ""],
    ["[]", []],
    ['{"temperature":21.5}', { temperature: 21.5 }],
  ])("may hold the result %s", (json, result) => {
    expect(reply(`{"id":7,"result":${json}}`)).toEqual({ id: 7, reply: { kind: "result", result } });
  });

  test("without result and error means null", () => {
    expect(reply('{"id":7}')).toEqual({ id: 7, reply: { kind: "result", result: null } });
    expect(reply('{"id":7,"error":null}')).toEqual({ id: 7, reply: { kind: "result", result: null } });
  });

  test("may write its id as text", () => {
    expect(reply('{"id":"2147483647","result":1}')?.id).toBe(2147483647);
  });

  test("may have members that are not ours", () => {
    expect(
      reply('{"jsonrpc":"2.0","src":"pump","dst":"pump/r/one","tag":"x","id":7,"result":1}')?.reply,
    ).toEqual({
      kind: "result",
      result: 1,
    });
  });

  test("with a member named __proto__ keeps it", () => {
    const parsed = reply('{"id":7,"result":{"__proto__":1}}')?.reply;
    expect(parsed?.kind === "result" && JSON.stringify(parsed.result)).toBe('{"__proto__":1}');
  });

  test("with the error code 0 and no message is a success without a result, as of Sys.SetDebug of Mongoose OS", () => {
    const frame = '{"id":7,"src":"pump","dst":"pump/r/one","error":{"code":0}}';
    expect(reply(frame)?.reply).toEqual({ kind: "result", result: null });
    expect(reply('{"id":7,"error":{"code":0,"message":"Update applied, finalizing"}}')?.reply).toEqual({
      kind: "error",
      code: 0,
      message: "Update applied, finalizing",
    });
  });

  test.each([404, -32601])("with the error code %i says that there is no such function", (code) => {
    expect(reply(`{"id":7,"error":{"code":${code},"message":"x"}}`)?.reply).toEqual({
      kind: "no_such_function",
    });
  });

  test.each([
    ['{"code":500,"message":"boom"}', 500, "boom"],
    ['{"code":-1}', -1, ""],
    ['{"code":"12","message":"as text"}', 12, "as text"],
    ['{"code":3.9,"message":{"why":1}}', 3, '{"why":1}'],
    ['{"code":-0.2,"message":""}', 0, ""],
  ])("with the error %s is the device's own", (error, code, message) => {
    expect(reply(`{"id":7,"error":${error}}`)?.reply).toEqual({ kind: "error", code, message });
  });

  test("has its error message cut at 1,024 characters", () => {
    const error = reply(`{"id":7,"error":{"code":1,"message":"${"x".repeat(5_000)}"}}`)?.reply;
    expect(error?.kind === "error" && error.message.length).toBe(1_024);
  });

  test.each([
    ['{"id":7,"error":"boom"}', "an error that is text"],
    ['{"id":7,"error":{"message":"boom"}}', "an error without code"],
    ['{"id":7,"error":{"code":1e300}}', "an error code beyond all integers"],
    ['{"id":7,"result":nan}', "a number JSON does not know"],
    ['{"id":7,"result":{"a":[1,2', "an end that is missing"],
    ['{"id": "7" , "result":\u0001}', "a stray control character"],
  ])("that is unreadable but for its id ends its call: %s", (text) => {
    expect(reply(text)).toEqual({ id: 7, reply: { kind: "unreadable" } });
  });

  test("that is not UTF-8 but begins with an id ends its call", () => {
    const bytes = Buffer.concat([
      Buffer.from('{"id":7,"result":"'),
      Buffer.from([0xff, 0xfe]),
      Buffer.from('"}'),
    ]);
    expect(parseReply(bytes)).toEqual({ id: 7, reply: { kind: "unreadable" } });
  });

  test.each([
    "",
    "hello",
    "[]",
    "7",
    '{"result":1}',
    '{"id":null,"result":1}',
    '{"id":1.5,"result":1}',
    '{"id":{},"result":1}',
  ])("whose id cannot be read belongs to no call: %s", (text) => {
    expect(reply(text)).toBeNull();
  });

  test("that is too large for the mesh is unreadable", () => {
    expect(reply(`{"id":7,"result":"${"x".repeat(512 * 1024 - 13)}"}`)?.reply.kind).toBe("result");
    expect(reply(`{"id":7,"result":"${"x".repeat(512 * 1024 - 12)}"}`)?.reply).toEqual({
      kind: "unreadable",
    });
  });

  test("that becomes too large when its numbers are written out is unreadable", () => {
    const numbers = Array.from({ length: 60_000 }, () => "1e20").join(",");
    expect(reply(`{"id":7,"result":[${numbers}]}`)?.reply).toEqual({ kind: "unreadable" });
  });

  test("whose other members have a number that no double holds is read", () => {
    expect(reply('{"id":7,"result":5,"ns":1738329123456789013}')?.reply).toEqual({
      kind: "result",
      result: 5,
    });
    expect(reply('{"id":7,"results":89490200001234567891,"result":5}')?.reply.kind).toBe("result");
  });

  test.each(["1e400", '[{"a":-1e999}]', "9007199254740993", '{"iccid":89490200001234567891}'])(
    "with a number that would be passed on as another is unreadable: %s",
    (result) => {
      expect(reply(`{"id":7,"result":${result}}`)?.reply).toEqual({ kind: "unreadable" });
    },
  );

  test("nested too deep to be written again is unreadable", () => {
    const deep = `${"[".repeat(200_000)}${"]".repeat(200_000)}`;
    expect(reply(`{"id":7,"result":${deep}}`)?.reply).toEqual({ kind: "unreadable" });
  });
});
