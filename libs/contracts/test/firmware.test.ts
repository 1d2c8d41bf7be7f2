import { describe, expect, test } from "@jest/globals";
import { checkFirmwareInput, FirmwareInput } from "../src/model/firmware.ts";
import { firmwareVersion } from "../src/model/fleet.ts";
import { ViolationList } from "../src/model/violation.ts";

describe("a file of firmware", () => {
  const file = { size: 1, sha256: "0".repeat(64) };

  test("has a name and versions without blanks around them", () => {
    const given = { ...file, name: " pump ", version: "1.1\n", reported_as: "\t1.1 b" };
    expect(FirmwareInput.parse(given)).toMatchObject({ name: "pump", version: "1.1", reported_as: "1.1 b" });
  });

  test("has a name and versions that are not blank", () => {
    const given = { ...file, name: " ", version: "\n", reported_as: "" };
    const refused = FirmwareInput.safeParse(given).error?.issues.map(({ path }) => path.join("/"));
    expect(refused).toEqual(["name", "version", "reported_as"]);
  });

  test.each(["a\nb", "a\u0000", "\u001b[31ma", "a\u0085b"])(
    "has no control characters in them: %j",
    (line) => {
      const violations = new ViolationList();
      checkFirmwareInput({ ...file, name: line, version: line, reported_as: line }, violations);
      expect(violations.pointers).toEqual(["/name", "/version", "/reported_as"]);
    },
  );
});

describe("the version that a device reports", () => {
  test.each([
    [2, "2"],
    [1.5, "1.5"],
    ["1.1\n", "1.1"],
    [" 2 ", "2"],
    [true, null],
    [{ major: 1 }, null],
    [null, null],
  ])("%j is read as %j", (fw_version, version) => {
    expect(firmwareVersion({ ota: { fw_version } })).toBe(version);
    expect(firmwareVersion({ fw_version })).toBe(version);
  });
});
