import { describe, expect, test } from "@jest/globals";
import { readProxyHeader } from "../src/listener/proxy-protocol.ts";

const signature = "0d0a0d0a000d0a515549540a";
const hex = (text: string) => Buffer.from(text.replaceAll(" ", ""), "hex");

describe("a PROXY header", () => {
  test.each([
    ["PROXY TCP4 192.0.2.7 192.0.2.1 4711 1883\r\nrest", "192.0.2.7", 42],
    ["PROXY TCP6 2001:db8::7 2001:db8::1 4711 1883\r\n", "2001:db8::7", 46],
    ["PROXY UNKNOWN\r\n", null, 15],
  ])("of version 1: %j", (text, address, length) => {
    expect(readProxyHeader(Buffer.from(text))).toEqual({ address, length });
  });

  test.each([
    ["TCP over IPv4", "21 11 000c c0000207 c0000201 1267 075b", "192.0.2.7", 28],
    [
      "TCP over IPv6",
      `21 21 0024 20010db8000000000000000000000007 ${"00".repeat(16)} 1267 075b`,
      "2001:db8::7",
      52,
    ],
    ["IPv4 with more fields", "21 11 000f c0000207 c0000201 1267 075b 040000", "192.0.2.7", 31],
    ["a health check", "20 00 0000", null, 16],
    ["a Unix socket", `21 31 0002 0000`, null, 18],
  ])("of version 2: %s", (_, rest, address, length) => {
    expect(readProxyHeader(hex(signature + rest))).toEqual({ address, length });
  });

  test("may come in pieces", () => {
    for (const whole of [
      Buffer.from("PROXY TCP4 192.0.2.7 192.0.2.1 4711 1883\r\n"),
      hex(`${signature} 21 11 000c c0000207 c0000201 1267 075b`),
    ])
      for (let end = 0; end < whole.length; end++)
        expect(readProxyHeader(whole.subarray(0, end))).toBe("incomplete");
  });

  test.each([
    ["MQTT", "101400044d515454"],
    ["text without an end", Buffer.from(`PROXY TCP4 ${"1".repeat(100)}`).toString("hex")],
    ["text with another family", Buffer.from("PROXY TCP6 192.0.2.7 192.0.2.1 1 1\r\n").toString("hex")],
    ["text without an address", Buffer.from("PROXY TCP4\r\n").toString("hex")],
    ["version 3", `${signature} 31 11 000c c0000207 c0000201 1267 075b`],
    ["too many fields", `${signature} 21 11 1000`],
    ["an address that is cut off", `${signature} 21 11 0004 c0000207`],
  ])("is none of %s", (_, bytes) => {
    expect(readProxyHeader(hex(bytes))).toBe("invalid");
  });
});
