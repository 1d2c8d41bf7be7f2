import { ManualClock } from "@devmesh/service-kit/testing/manual-clock";
import { describe, expect, test } from "@jest/globals";
import { KeyCache, type VerifiedKey } from "../src/auth/key-cache.ts";

function key(keyId: string, expiresAtMs = Number.POSITIVE_INFINITY): VerifiedKey {
  return { keyId, kind: "master", principal: { kind: "master" }, authorKeyId: keyId, expiresAtMs };
}

function setUp(maxKeys = 3) {
  const clock = new ManualClock();
  const cache = new KeyCache({ maxKeys, ttlMs: 60_000, clock });
  const remember = (digest: string, found = key(digest)) => cache.finish(cache.begin(), digest, found);
  return { clock, cache, remember };
}

describe("the key cache", () => {
  test("has a key that is overdue for as long again as its time, and no longer", async () => {
    const { clock, cache, remember } = setUp();
    remember("a");
    await clock.advance(59_999);
    expect(cache.find("a")).toMatchObject({ isOverdue: false });
    await clock.advance(1);
    expect(cache.find("a")).toMatchObject({ isOverdue: true });
    await clock.advance(59_999);
    expect(cache.find("a")).toMatchObject({ isOverdue: true });
    await clock.advance(1);
    expect(cache.find("a")).toBeUndefined();
    expect(cache.size).toBe(0);
  });

  test("wants a key verified again before its time ends, once a second", async () => {
    const { clock, cache, remember } = setUp();
    const isDue = () => cache.find("a")?.isDue;
    remember("a");
    await clock.advance(49_999);
    expect(isDue()).toBe(false);
    await clock.advance(1);
    expect([isDue(), isDue()]).toEqual([true, false]);
    await clock.advance(1_000);
    expect([isDue(), isDue()]).toEqual([true, false]);
    remember("a");
    await clock.advance(49_999);
    expect(isDue()).toBe(false);
  });

  test("drops a key by its digest, and another secret of it stays", () => {
    const { cache, remember } = setUp();
    remember("a", key("one"));
    remember("b", key("one"));
    cache.forget("a");
    expect(cache.find("a")).toBeUndefined();
    expect(cache.find("b")).toBeDefined();
    cache.revoke(["one"]);
    expect(cache.find("b")).toBeUndefined();
  });

  test("checks the expiry of a key on each use", async () => {
    const { clock, cache, remember } = setUp();
    remember("a", key("a", clock.now().getTime() + 5_000));
    await clock.advance(4_999);
    expect(cache.find("a")).toBeDefined();
    await clock.advance(1);
    expect(cache.find("a")).toBeUndefined();
  });

  test("forgets the least recently used key when it is full", () => {
    const { cache, remember } = setUp();
    for (const digest of ["a", "b", "c"]) remember(digest);
    cache.find("a");
    remember("d");
    expect(["a", "b", "c", "d"].filter((digest) => cache.find(digest))).toEqual(["a", "c", "d"]);
    expect(cache.size).toBe(3);
  });

  test("drops a revoked key, by its id, whatever its secrets", () => {
    const { cache, remember } = setUp();
    remember("a", key("one"));
    remember("b", key("one"));
    remember("c", key("two"));
    cache.revoke(["one", "never seen"]);
    expect(cache.find("a")).toBeUndefined();
    expect(cache.find("b")).toBeUndefined();
    expect(cache.find("c")).toBeDefined();
  });

  test("does not cache an answer that was overtaken by the revocation", () => {
    const { cache } = setUp();
    const verification = cache.begin();
    cache.revoke(["one"]);
    expect(cache.finish(verification, "a", key("one"))).toBe(false);
    expect(cache.find("a")).toBeUndefined();
    expect(cache.finish(cache.begin(), "b", key("one"))).toBe(true);
  });

  test("uses, but does not keep, an answer during which revocations may have been missed", () => {
    const { cache, remember } = setUp();
    remember("a");
    const verification = cache.begin();
    cache.clear();
    expect(cache.find("a")).toBeUndefined();
    expect(cache.finish(verification, "b", key("b"))).toBe(true);
    expect(cache.find("b")).toBeUndefined();
  });
});
