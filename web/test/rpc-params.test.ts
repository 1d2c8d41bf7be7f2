import { describe, expect, test } from "@jest/globals";
import { paramsIn } from "../src/device/rpc-params.ts";

describe("parameters of a call", () => {
  test("may be left out", () => {
    expect(paramsIn(" \n")).toMatchObject({ ready: true, wrong: null, value: undefined });
  });

  test.each(['{"on":true}', "[1,2]"])("can be %s", (text) => {
    expect(paramsIn(text)).toMatchObject({ ready: true, wrong: null, value: JSON.parse(text) });
  });

  test.each(["7", '"on"', "null"])("cannot be %s", (text) => {
    expect(paramsIn(text)).toMatchObject({ ready: false, wrong: "Parameters are a JSON object or array." });
  });

  test("cannot be sent before they are complete", () => {
    expect(paramsIn('{"on":')).toMatchObject({ ready: false, wrong: null, parsed: { kind: "fault" } });
  });
});
