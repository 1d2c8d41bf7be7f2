import { describe, expect, test } from "@jest/globals";
import { launcherArguments } from "../src/launcher-arguments.ts";

describe("the launcher's command line", () => {
  test("asks for a plain start, a demonstration, or a mesh without some services", () => {
    expect(launcherArguments([])).toEqual({ demo: false, without: new Set(), container: false });
    expect(launcherArguments(["--demo"])).toMatchObject({ demo: true });
    expect(launcherArguments(["--without", "data", "--without=mailer"])).toMatchObject({
      without: new Set(["data", "mailer"]),
    });
    expect(launcherArguments(["--help"])).toBe("help");
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
    expect(() => launcherArguments(args)).toThrow(/\w/);
  });
});
