import { describe, expect, test } from "@jest/globals";
import { partOf } from "../src/http/byte-range.ts";
import { RequestRefused } from "../src/http/gateway-errors.ts";

const file = { etag: '"abc"', size: 1_000 };

const asked = (headers: Readonly<Record<string, string>>, method = "GET") =>
  partOf({ method, header: (name) => headers[name] }, file);

describe("a range of 1,000 bytes", () => {
  test.each([
    ["bytes=0-0", 0, 1],
    ["bytes=0-999", 0, 1_000],
    ["bytes=10-19", 10, 20],
    ["BYTES=990-", 990, 1_000],
    ["bytes=0-", 0, 1_000],
    ["bytes=999-5000", 999, 1_000],
    ["bytes=-1", 999, 1_000],
    ["bytes=-5000", 0, 1_000],
  ])("%s is the part from %d to before %d", (range, start, end) => {
    expect(asked({ range })).toEqual({
      start,
      end,
      status: 206,
      headers: {
        ETag: '"abc"',
        "Accept-Ranges": "bytes",
        "Content-Length": String(end - start),
        "Content-Range": `bytes ${start}-${end - 1}/1000`,
      },
    });
  });

  test.each(["bytes=1000-", "bytes=1000-2000", "bytes=-0", "bytes=99999999999999999999-"])(
    "%s has nothing of it",
    (range) => {
      const refused = expect.objectContaining({
        reason: "range_not_satisfiable",
        headers: { "Content-Range": "bytes */1000" },
      });
      expect(() => asked({ range })).toThrow(RequestRefused);
      expect(refused).toEqual(
        (() => {
          try {
            return asked({ range });
          } catch (error) {
            return error;
          }
        })(),
      );
    },
  );

  test.each(["", "bytes=", "bytes=-", "bytes=5-4", "bytes=0-1,4-5", "bytes=a-b", "items=0-1", "bytes 0-1"])(
    "%j is answered with the whole",
    (range) => {
      expect(asked({ range })).toMatchObject({ start: 0, end: 1_000, status: 200 });
    },
  );

  test("counts only while the file is the one of If-Range", () => {
    const range = "bytes=0-9";
    expect(asked({ range, "if-range": '"abc"' }).status).toBe(206);
    for (const other of ['"def"', 'W/"abc"', "Sat, 31 Jan 2026 12:00:00 GMT"])
      expect(asked({ range, "if-range": other })).toMatchObject({ end: 1_000, status: 200 });
  });

  test("is not asked of a file that the client has", () => {
    for (const range of ["bytes=0-9", "bytes=5000-"])
      expect(asked({ range, "if-none-match": 'W/"abc"' })).toMatchObject({ end: 1_000, status: 200 });
    expect(asked({ range: "bytes=0-9", "if-none-match": '"def"' }).status).toBe(206);
  });

  test("is ignored for HEAD", () => {
    expect(asked({ range: "bytes=0-9" }, "HEAD")).toMatchObject({ end: 1_000, status: 200 });
  });
});
