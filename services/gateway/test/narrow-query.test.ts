import { describe, expect, test } from "@jest/globals";
import { narrowQuery } from "../src/routes/narrow-query.ts";

describe("narrowing", () => {
  const now = new Date("2026-03-01T00:00:00.000Z");

  test("never widens a query", () => {
    const query = { topic: "a", limit: 5, since: "PT1H" };
    expect(narrowQuery(query, { limit: 9, since: "2020-01-01T00:00:00.000Z" }, now)).toEqual({
      topic: "a",
      order: "asc",
      limit: 5,
      since: "2026-02-28T23:00:00.000Z",
    });
    expect(narrowQuery({ topic: "a" }, {}, now)).toMatchObject({ limit: 100, since: undefined });
    expect(narrowQuery({ topic: "a" }, { limit: 5000 }, now)).toMatchObject({ limit: 5000 });
    expect(narrowQuery({ topic: "a", limit: 1000 }, {}, now)).toMatchObject({ limit: 1000 });
  });
});
