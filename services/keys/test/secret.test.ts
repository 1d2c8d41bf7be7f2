import { randomBytes } from "node:crypto";
import { secretPattern } from "@devmesh/contracts/model/api-key";
import { createIdSource, isSortableId } from "@devmesh/service-kit/sortable-id";
import { ManualClock } from "@devmesh/service-kit/testing/manual-clock";
import { describe, expect, test } from "@jest/globals";
import fc from "fast-check";
import { createEncryption } from "../src/credentials/encryption.ts";
import { createSecret } from "../src/credentials/secret.ts";

describe("a secret", () => {
  test("has the prefix of its kind and 32 base62 characters", () => {
    for (const kind of ["master", "device_key", "customer", "public_key", "device"] as const) {
      expect(createSecret(kind)).toMatch(secretPattern);
    }
    expect(createSecret("master")).toMatch(/^mk_/);
    expect(new Set(Array.from({ length: 1_000 }, () => createSecret("device"))).size).toBe(1_000);
  });

  test("takes each character equally often", () => {
    const secrets = 5_000;
    const counts = new Map<string, number>();
    for (let at = 0; at < secrets; at++) {
      for (const character of createSecret("device").slice(3))
        counts.set(character, (counts.get(character) ?? 0) + 1);
    }
    expect(counts.size).toBe(62);
    const expected = (secrets * 32) / 62;
    let deviation = 0;
    for (const count of counts.values()) deviation += (count - expected) ** 2 / expected;
    // Chi-square with 61 degrees of freedom: above 150 once in a billion runs; `byte % 62` of all bytes gives over
    // 2,000.
    expect(deviation).toBeLessThan(150);
  });
});

describe("an encrypted secret", () => {
  const encryption = createEncryption(randomBytes(32));

  test("opens in its place only", () => {
    const encrypted = encryption.encrypt("mk_secret", "api_key 1");
    expect(encryption.decrypt(encrypted, "api_key 1")).toBe("mk_secret");
    expect(() => encryption.decrypt(encrypted, "api_key 2")).toThrow();
  });

  test("comes out as it went in, whatever text and place", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme" }), fc.string({ unit: "grapheme" }), (text, identity) => {
        expect(encryption.decrypt(encryption.encrypt(text, identity), identity)).toBe(text);
      }),
    );
  });

  test("shows neither its text nor that two texts are equal", () => {
    const [one, two] = [encryption.encrypt("mk_secret", "a"), encryption.encrypt("mk_secret", "a")];
    expect(Buffer.from(one).includes("mk_secret")).toBe(false);
    expect(Buffer.from(one).equals(two)).toBe(false);
  });

  test("is refused when a bit was changed, when cut off, and under another key", () => {
    const encrypted = encryption.encrypt("mk_secret", "a");
    for (let at = 0; at < encrypted.length; at++) {
      const changed = Buffer.from(encrypted);
      changed.writeUInt8((changed[at] ?? 0) ^ 1, at);
      expect(() => encryption.decrypt(changed, "a")).toThrow();
    }
    expect(() => encryption.decrypt(encrypted.subarray(0, 20), "a")).toThrow(/unknown form/);
    expect(() => createEncryption(randomBytes(32)).decrypt(encrypted, "a")).toThrow(/another encryption key/);
  });

  test("a code is right for its message and its key alone", () => {
    const code = encryption.authenticate("confirm 1");
    expect(encryption.isAuthentic("confirm 1", code)).toBe(true);
    expect(encryption.isAuthentic("confirm 2", code)).toBe(false);
    expect(encryption.isAuthentic("confirm 1", "")).toBe(false);
    expect(createEncryption(randomBytes(32)).isAuthentic("confirm 1", code)).toBe(false);
  });
});

test("ids ascend within a millisecond, past the counter, and while the clock goes back", () => {
  let now = 1_000_000;
  const clock = Object.assign(new ManualClock(), { now: () => new Date(now) });
  const newId = createIdSource(clock);
  const ids = Array.from({ length: 10_000 }, (_, at) => {
    if (at === 9_000) now -= 500;
    return newId();
  });
  expect(ids.toSorted()).toEqual(ids);
  expect(ids.every(isSortableId)).toBe(true);
  expect(isSortableId("'; DROP TABLE")).toBe(false);
});
