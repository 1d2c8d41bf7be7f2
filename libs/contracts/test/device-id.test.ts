import { expect, test } from "@jest/globals";
import fc from "fast-check";
import { DeviceId } from "../src/model/device-id.ts";

test.each(["a", "pump-1", "0", "A_b-c", "x".repeat(64), "dbx", "_".padStart(2, "a")])(
  "%p is a device id",
  (id) => {
    expect(DeviceId.safeParse(id).success).toBe(true);
  },
);

test.each([
  "",
  "x".repeat(65),
  "-a",
  "_a",
  "_INBOX",
  "db",
  "DB",
  "Db",
  "a.b",
  "a/b",
  "a b",
  "a*",
  "a>",
  "+",
  "#",
  "ä",
  "a\n",
  "a\0",
  "$SYS",
])("%j is none", (id) => {
  expect(DeviceId.safeParse(id).success).toBe(false);
});

test("whatever is a device id is one level of a topic and one token of a subject", () => {
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.stringMatching(/^[A-Za-z0-9._\-/*>+# ]{1,70}$/)), (text) => {
      if (!DeviceId.safeParse(text).success) return;
      expect(text).not.toMatch(/[./*>+#\s\0$]/);
      expect(text.toLowerCase()).not.toBe("db");
    }),
  );
});
