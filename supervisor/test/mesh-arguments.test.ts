import { describe, expect, test } from "@jest/globals";
import { meshArguments } from "../src/mesh-arguments.ts";

describe("the command line of a mesh", () => {
  test("asks for a plain start, a demonstration, or a mesh without some services", () => {
    expect(meshArguments([])).toEqual({ demo: false, without: new Set() });
    expect(meshArguments(["--demo"])).toMatchObject({ demo: true });
    expect(meshArguments(["--without", "data", "--without=mailer"])).toMatchObject({
      without: new Set(["data", "mailer"]),
    });
    expect(meshArguments(["--help"])).toBe("help");
  });

  test.each([
    [["--demon"]],
    [["extra"]],
    [["--without"]],
    [["--without", "nonsense"]],
    [["--demo", "--without=gateway"]],
    [["--demo", "--without=keys"]],
    [["--demo", "--without=rpc-bridge"]],
  ])("%j is refused with the reason", (args) => {
    expect(() => meshArguments(args)).toThrow(/\w/);
  });
});
