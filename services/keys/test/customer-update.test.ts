import { type Customer, customerMetaBytes } from "@devmesh/contracts/model/customer";
import type { JsonObject } from "@devmesh/contracts/model/json";
import { describe, expect, test } from "@jest/globals";
import fc from "fast-check";
import { readCustomerUpdate } from "../src/customers/customer-update.ts";

const customer: Customer = {
  id: "1",
  email: "ann@example.com",
  token: "ck_1",
  meta: { old: true },
  created_at: "2026-01-01T00:00:00.000Z",
  updated_at: "2026-01-01T00:00:00.000Z",
  confirmed_at: null,
};

/** As it comes off the wire: members named `__proto__` are data there. */
const parse = (value: unknown): JsonObject => JSON.parse(JSON.stringify(value));

describe("a posted customer", () => {
  test("with any meta that fits replaces meta by exactly that", () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), fc.boolean(), (given, whole) => {
        const meta = parse(given);
        const text = JSON.stringify(meta);
        const update = readCustomerUpdate(customer, whole ? { ...customer, meta } : { meta });
        const fits = Buffer.byteLength(text) <= customerMetaBytes;
        expect(update).toEqual(fits ? { meta: text } : { tooLarge: true });
      }),
    );
  });

  test("with any other member changed or unknown is refused, that member named", () => {
    fc.assert(
      fc.property(fc.string(), fc.jsonValue(), (name, value) => {
        fc.pre(name !== "meta");
        const body = JSON.parse(`{"meta":{},${JSON.stringify(name)}:${JSON.stringify(value)}}`);
        const same = Object.hasOwn(customer, name) && Object.is(Reflect.get(customer, name), value);
        const pointer = `/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`;
        const update = readCustomerUpdate(customer, body);
        if (same) expect(update).toEqual({ meta: "{}" });
        else expect(update).toEqual({ violations: [{ pointer, detail: expect.any(String) }] });
      }),
    );
  });

  test("with more wrong members than an error can list is refused all the same, the first of them named", () => {
    const body = Object.fromEntries(Array.from({ length: 40_000 }, (_, n) => [`member_${n}`, 1]));
    const update = readCustomerUpdate(customer, { meta: {}, ...body });
    if (!("violations" in update)) throw new Error("it was taken");
    expect(update.violations).toHaveLength(500);
    expect(update.violations[0]).toEqual({ pointer: "/member_0", detail: "is not known here" });
  });
});
