import { describe, expect, test } from "@jest/globals";
import { EmailAddress } from "../src/model/email-address.ts";

const label = (length: number) => "a".repeat(length);

describe("an e-mail address", () => {
  test.each([
    ["ann@example.com", "ann@example.com"],
    [" Ann.Example+tag@Example.COM\t", "ann.example+tag@example.com"],
    ["o'brien@example.com", "o'brien@example.com"],
    ["!#$%&'*+/=?^_`{|}~-@example.com", "!#$%&'*+/=?^_`{|}~-@example.com"],
    ["1@2.example.co.uk", "1@2.example.co.uk"],
    ["ann@xn--mnchen-3ya.de", "ann@xn--mnchen-3ya.de"],
    ["ann@MÜNCHEN.de", "ann@xn--mnchen-3ya.de"],
    ["ann@пример.рф", "ann@xn--e1afmkfd.xn--p1ai"],
    ["ann@例え.jp", "ann@xn--r8jz45g.jp"],
    ["Jörg@Example.com", "jörg@example.com"],
    ["jo\u0308rg@example.com", "jörg@example.com"],
    ["Δοκιμή.β+x@παράδειγμα.δοκιμή", "δοκιμή.β+x@xn--hxajbheg2az3al.xn--jxalpdlp"],
    ["用户@例え.jp", "用户@xn--r8jz45g.jp"],
    ["उपयोगकर्ता@example.com", "उपयोगकर्ता@example.com"],
    [`${"ö".repeat(32)}@example.com`, `${"ö".repeat(32)}@example.com`],
    [`${label(64)}@${label(63)}.com`, `${label(64)}@${label(63)}.com`],
  ])("%j is taken as %j", (text, address) => {
    expect(EmailAddress.parse(text)).toBe(address);
    expect(EmailAddress.parse(address)).toBe(address);
  });

  test.each([
    "",
    "@",
    "ann",
    "ann@",
    "@example.com",
    "ann@localhost",
    "ann@example",
    "ann@example.c",
    "ann@example.com.",
    "ann@.example.com",
    "ann@example..com",
    "ann@-example.com",
    "ann@example-.com",
    "ann@ex_ample.com",
    "ann@192.0.2.1",
    "ann@[192.0.2.1]",
    "ann@1.2.3",
    ".ann@example.com",
    "ann.@example.com",
    "an..n@example.com",
    "ann ann@example.com",
    '"ann"@example.com',
    "Ann <ann@example.com>",
    "ann@example.com,bob@example.com",
    "ann@bob@example.com",
    "ann@example.com\r\nBcc: bob@example.com",
    "ann\r\nBcc:bob@example.com",
    "ann@example.com\0",
    "ann@\u0000ü.com",
    "ann@mün/chen.de",
    "ann@mün?chen.de",
    "ann@mün#chen.de",
    "ann@mün:80",
    "ann@mün%2echen.de",
    "ann@mün chen.de",
    "ann@mün\u200bchen",
    "ann@ü",
    "ann@１.２.３.４",
    `${label(65)}@example.com`,
    `${"ö".repeat(32)}a@example.com`,
    "jörg müller@example.com",
    "jörg\u00a0m@example.com",
    "j\u200börg@example.com",
    "j\u202eörg@example.com",
    "j\ud800rg@example.com",
    "jörg..m@example.com",
    ".ö@example.com",
    '"jörg"@example.com',
    `ann@${label(64)}.com`,
    `ann@${label(61)}ü.com`,
    `ann@${`${label(60)}.`.repeat(4)}example.com`,
  ])("%j is refused", (text) => {
    expect(EmailAddress.safeParse(text).success).toBe(false);
  });
});
