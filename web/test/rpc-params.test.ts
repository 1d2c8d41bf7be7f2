import { describe, expect, test } from "@jest/globals";
import { paramsIn } from "../src/features/devices/shared/call-form.tsx";

describe("parameters of a call", () => {
  test("may be left out", () => {
    expect(paramsIn(" \n")).toMatchObject({ error: null, value: undefined });
  });

  test.each(['{"on":true}', "[1,2]"])("can be %s", (text) => {
    expect(paramsIn(text)).toMatchObject({ error: null, value: JSON.parse(text) });
  });

  test.each(["7", '"on"', "null"])("cannot be %s", (text) => {
    expect(paramsIn(text)).toMatchObject({ error: "Parameters are a JSON object or array." });
  });

  test("cannot be sent before they are complete", () => {
    expect(paramsIn('{"on":')).toMatchObject({ error: "Line 1, column 7: a value is expected" });
  });
});
