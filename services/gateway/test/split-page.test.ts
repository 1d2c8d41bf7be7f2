import { pageOf } from "@devmesh/contracts/contract";
import { describe, expect, test } from "@jest/globals";
import { z } from "zod";
import { splitPage } from "../src/http/split-page.ts";

const items = (count: number, text = "") => Array.from({ length: count }, (_, id) => ({ id, text }));

describe("splitting a page", () => {
  const schema = pageOf(z.object({ id: z.number(), text: z.string() }));
  const encoded = (page: z.input<typeof schema>) => Buffer.from(JSON.stringify(schema.parse(page)));

  test.each([null, "12", 'a"b\\c', "", "\\", "ä"])(
    "yields the cursor %j and the bytes between the brackets",
    (next) => {
      const { next: cursor, items: bytes } = splitPage(encoded({ items: items(2, '"],"'), next }));
      expect(cursor).toBe(next);
      expect(JSON.parse(`[${Buffer.from(bytes).toString()}]`)).toEqual(items(2, '"],"'));
    },
  );

  test("of no items yields no bytes", () => {
    expect(splitPage(encoded({ next: null, items: [] })).items).toHaveLength(0);
  });

  test("of a view into a larger buffer reads the view alone", () => {
    const page = encoded({ next: "1", items: items(1) });
    const larger = Buffer.concat([Buffer.from("before"), page, Buffer.from("after")]);
    expect(splitPage(new Uint8Array(larger.buffer, larger.byteOffset + 6, page.length)).next).toBe("1");
  });

  test.each([
    '{"items":[],"next":null}',
    '{"next":null,"items":[]',
    '{"next":12,"items":[]}',
    '{"next":"12,"items":[]}',
    '{"next":null,"more":1,"items":[]}',
    '{"next":null,"items":{}}',
    '{"next":"unended',
    "[]",
    "",
  ])("refuses %j", (text) => {
    expect(() => splitPage(Buffer.from(text))).toThrow();
  });
});
