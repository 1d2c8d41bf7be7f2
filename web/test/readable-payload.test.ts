import { describe, expect, test } from "@jest/globals";
import { readablePayload } from "../src/features/data/record-dialog.tsx";

describe("a payload", () => {
  test("of JSON is shown in lines", () => {
    expect(readablePayload('{"celsius":21.5,"at":[1,2]}')).toBe(
      '{\n  "celsius": 21.5,\n  "at": [\n    1,\n    2\n  ]\n}',
    );
  });

  test.each(["21.5", "on", "{half", "[1,", "", '{"a":1,"a":2}', '{"id":12345678901234567890}'])(
    "such as %s is shown as it came",
    (message) => {
      expect(readablePayload(message)).toBe(message);
    },
  );
});
