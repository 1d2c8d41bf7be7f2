import { expect, test } from "@jest/globals";
import { ConcurrencyLimit } from "../src/http/concurrency-limit.ts";

const refusal = expect.objectContaining({ reason: "too_many_listeners", headers: { "Retry-After": "5" } });

test("each key has the slots of its kind, all keys together those of the gateway", () => {
  const limit = new ConcurrencyLimit({
    perMasterKey: 2,
    perOtherKey: 1,
    total: 4,
    refusal: "too_many_listeners",
  });
  limit.acquire("first", "master");
  limit.acquire("first", "master");
  expect(() => limit.acquire("first", "master")).toThrow(refusal);
  limit.acquire("pump/public_key", "public_key");
  expect(() => limit.acquire("pump/public_key", "public_key")).toThrow(refusal);
  limit.acquire("second", "master");
  expect(() => limit.acquire("second", "master")).toThrow(refusal);
  expect(() => limit.acquire("third", "master")).toThrow(refusal);
});

test("a slot that is released twice is released once", () => {
  const limit = new ConcurrencyLimit({
    perMasterKey: 2,
    perOtherKey: 1,
    total: 2,
    refusal: "too_many_listeners",
  });
  const release = limit.acquire("first", "master");
  limit.acquire("first", "master");
  release();
  release();
  limit.acquire("second", "master");
  expect(() => limit.acquire("first", "master")).toThrow(refusal);
});

test("a refusal takes no slot", () => {
  const limit = new ConcurrencyLimit({
    perMasterKey: 1,
    perOtherKey: 1,
    total: 2,
    refusal: "too_many_listeners",
  });
  const release = limit.acquire("first", "master");
  for (let times = 0; times < 3; times++) expect(() => limit.acquire("first", "master")).toThrow(refusal);
  release();
  limit.acquire("first", "master");
  limit.acquire("second", "master");
});
