import { describe, expect, test } from "@jest/globals";
import { cutPage, MAX_REPLY_BYTES } from "../src/rpc/page.ts";

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
