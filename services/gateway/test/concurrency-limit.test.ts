import { expect, test } from "@jest/globals";
import { Places } from "../src/http/concurrency-limit.ts";

const refusal = expect.objectContaining({ reason: "too_many_listeners", headers: { "Retry-After": "5" } });

test("each key has as many places as its kind, and all together no more than the gateway", () => {
  const places = new Places({ ofMasterKey: 2, ofOtherKey: 1, inAll: 4 }, "too_many_listeners");
  places.take("first", "master");
  places.take("first", "master");
  expect(() => places.take("first", "master")).toThrow(refusal);
  places.take("pump/public_key", "public_key");
  expect(() => places.take("pump/public_key", "public_key")).toThrow(refusal);
  places.take("second", "master");
  expect(() => places.take("second", "master")).toThrow(refusal);
  expect(() => places.take("third", "master")).toThrow(refusal);
});

test("a place that is given back twice is given back once", () => {
  const places = new Places({ ofMasterKey: 2, ofOtherKey: 1, inAll: 2 }, "too_many_listeners");
  const leave = places.take("first", "master");
  places.take("first", "master");
  leave();
  leave();
  places.take("second", "master");
  expect(() => places.take("first", "master")).toThrow(refusal);
});

test("a refusal takes no place", () => {
  const places = new Places({ ofMasterKey: 1, ofOtherKey: 1, inAll: 2 }, "too_many_listeners");
  const leave = places.take("first", "master");
  for (let times = 0; times < 3; times++) expect(() => places.take("first", "master")).toThrow(refusal);
  leave();
  places.take("first", "master");
  places.take("second", "master");
});
