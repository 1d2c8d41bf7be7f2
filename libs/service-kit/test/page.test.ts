import { pageOf } from "@devmesh/contracts/contract";
import { describe, expect, test } from "@jest/globals";
import { z } from "zod";
import { cutPage, MAX_REPLY_BYTES, splitPage } from "../src/rpc/page.ts";

const cursorOf = (item: { id: number }) => String(item.id);
const items = (count: number, text = "") => Array.from({ length: count }, (_, id) => ({ id, text }));

describe("cutting a page", () => {
  test("takes all when all fit, and then there is no next", () => {
    expect(cutPage(items(3), { limit: 3, cursorOf })).toEqual({ next: null, items: items(3) });
    expect(cutPage([], { limit: 3, cursorOf })).toEqual({ next: null, items: [] });
  });

  test("cuts by count, and next continues behind the last item", () => {
    expect(cutPage(items(4), { limit: 3, cursorOf })).toEqual({ next: "2", items: items(3) });
    expect(cutPage(items(3), { limit: 3, cursorOf, more: true }).next).toBe("2");
  });

  test("cuts by bytes, so that the page as JSON is never over the largest reply", () => {
    const page = cutPage(items(1_000, "ä".repeat(2_000)), { limit: 5_000, cursorOf });
    expect(page.items.length).toBeGreaterThan(100);
    expect(page.next).toBe(String(page.items.length - 1));
    expect(Buffer.byteLength(JSON.stringify(page))).toBeLessThanOrEqual(MAX_REPLY_BYTES);
  });

  test("gives an item that is too large alone a page of its own, so that nobody walks in circles", () => {
    const page = cutPage(items(2, "x".repeat(2_000)), { limit: 5, cursorOf, maxBytes: 1_000 });
    expect(page.items).toHaveLength(1);
    expect(page.next).toBe("0");
  });
});

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
