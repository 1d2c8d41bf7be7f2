import { describe, expect, test } from "@jest/globals";
import { defaultSender, MailAddressText } from "../src/mail-address.ts";

describe("MAIL_FROM", () => {
  test.each([
    ["ann@example.com", { name: "", address: "ann@example.com" }],
    [" ann@example.com ", { name: "", address: "ann@example.com" }],
    ["Ann Example <ann@example.com>", { name: "Ann Example", address: "ann@example.com" }],
    ['"Example, Ann" <ann@example.com>', { name: "Example, Ann", address: "ann@example.com" }],
    ["Gerätewolke <no-reply@[127.0.0.1]>", { name: "Gerätewolke", address: "no-reply@[127.0.0.1]" }],
  ])("%s is one address", (text, address) => {
    expect(MailAddressText.parse(text)).toEqual(address);
  });

  test.each([
    "",
    "Ann",
    "ann@",
    "@example.com",
    "a@example.com, b@example.com",
    "a@example.com <b@example.com> c",
    "Ann <a@example.com>, Bob <b@example.com>",
    "Ann\r\nBcc: eve@example.com <a@example.com>",
    "a@example.com\nBcc: eve@example.com",
  ])("%j is refused", (text) => {
    expect(MailAddressText.safeParse(text).success).toBe(false);
  });
});

describe("the default sender", () => {
  test.each([
    ["https://devices.example.com/mesh", "no-reply@devices.example.com"],
    ["http://localhost:8080", "no-reply@localhost"],
    ["http://127.0.0.1:8080", "no-reply@[127.0.0.1]"],
    ["http://[::1]:8080", "no-reply@[IPv6:::1]"],
  ])("at %s is %s", (publicUrl, address) => {
    expect(defaultSender(new URL(publicUrl))).toEqual({ name: "Devmesh", address });
  });
});
