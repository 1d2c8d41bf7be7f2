import { ManualClock } from "@devmesh/service-kit/testing/manual-clock";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { RateLimit } from "../src/auth/rate-limit.ts";
import { rateAddress } from "../src/http/exchange.ts";
import { RequestRefused } from "../src/http/gateway-errors.ts";
import { type Fixture, startFixture } from "./gateway-fixture.ts";

describe("a token bucket", () => {
  const taken = (limit: RateLimit, key: string) => {
    const headers: Record<string, string> = {};
    try {
      limit.take(key, headers);
      return { granted: true, headers };
    } catch (error) {
      if (!(error instanceof RequestRefused)) throw error;
      return { granted: false, headers: { ...headers, ...error.headers } };
    }
  };

  test("holds twice its rate and fills at its rate", async () => {
    const clock = new ManualClock();
    const limit = new RateLimit({ name: "key", perSecond: 2, maxBuckets: 10, clock });
    expect(limit.policy).toBe('"key";q=4;w=2');
    const states = Array.from({ length: 5 }, () => taken(limit, "a"));
    expect(states.map(({ granted }) => granted)).toEqual([true, true, true, true, false]);
    expect(states.map(({ headers }) => headers.RateLimit)).toEqual([
      '"key";r=3;t=1',
      '"key";r=2;t=1',
      '"key";r=1;t=2',
      '"key";r=0;t=2',
      '"key";r=0;t=2',
    ]);
    expect(states[4]?.headers["Retry-After"]).toBe("1");
    expect(taken(limit, "b").granted).toBe(true);
    await clock.advance(500);
    expect([taken(limit, "a").granted, taken(limit, "a").granted]).toEqual([true, false]);
    await clock.advance(3_600_000);
    expect(Array.from({ length: 5 }, () => taken(limit, "a").granted).filter(Boolean)).toHaveLength(4);
  });

  test("slower than one a second still grants one", async () => {
    const clock = new ManualClock();
    const limit = new RateLimit({ name: "slow", perSecond: 0.1, maxBuckets: 10, clock });
    expect(taken(limit, "a").granted).toBe(true);
    expect(taken(limit, "a").headers["Retry-After"]).toBe("10");
    await clock.advance(10_000);
    expect(taken(limit, "a").granted).toBe(true);
  });

  test("remembers a bounded number of callers", () => {
    const limit = new RateLimit({ name: "key", perSecond: 1, maxBuckets: 100, clock: new ManualClock() });
    const callers = Array.from({ length: 1_000 }, (_, at) => `caller ${at}`);
    for (const caller of callers) limit.charge(caller);
    const isKnown = (caller: string) => taken(limit, caller).headers.RateLimit !== '"key";r=1;t=1';
    expect(isKnown("caller 0")).toBe(false);
    expect(isKnown("caller 999")).toBe(true);
  });

  test("charged beyond empty is waited for", async () => {
    const clock = new ManualClock();
    const limit = new RateLimit({ name: "key", perSecond: 10, maxBuckets: 10, clock });
    for (let at = 0; at < 40; at++) limit.charge("a");
    await clock.advance(2_000);
    expect(() => limit.assertNotEmpty("a")).toThrow(RequestRefused);
    await clock.advance(200);
    expect(() => limit.assertNotEmpty("a")).not.toThrow();
  });

  test("lets one request leave a debt, and no other add to it before it is paid", async () => {
    const clock = new ManualClock();
    const limit = new RateLimit({ name: "key", perSecond: 10, maxBuckets: 10, clock });
    const headers: Record<string, string> = {};
    for (let at = 0; at < 20; at++) limit.take("a", headers);
    limit.surcharge("a", 30, headers);
    expect(headers.RateLimit).toBe('"key";r=0;t=5');
    expect(() => limit.surcharge("a", 1, headers)).toThrow(RequestRefused);
    expect(taken(limit, "a")).toMatchObject({ granted: false, headers: { "Retry-After": "4" } });
    expect(taken(limit, "b").granted).toBe(true);
    await clock.advance(3_100);
    expect(taken(limit, "a")).toMatchObject({ granted: true, headers: { RateLimit: '"key";r=0;t=2' } });
  });
});

test.each([
  ["10.0.0.1", "10.0.0.1"],
  ["::ffff:10.0.0.1", "10.0.0.1"],
  ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"],
  ["2001:db8::1", "2001:db8:0:0::/64"],
  ["::1", "0:0:0:0::/64"],
  [undefined, "unknown"],
])("the rate of address %s is counted on %s", (address, counted) =>
  expect(rateAddress(address)).toBe(counted),
);

describe("over HTTP", () => {
  const clock = new ManualClock();
  let mesh: Fixture;
  beforeAll(async () => {
    mesh = await startFixture({
      clock,
      env: { RATE_MASTER: "3", RATE_KEY: "2", RATE_ANONYMOUS: "1", TRUST_PROXY: "loopback" },
    });
  });
  afterAll(async () => mesh[Symbol.asyncDispose]());

  const burst = async (size: number, path: string, request = {}) => {
    const statuses: number[] = [];
    for (let at = 0; at < size; at++) statuses.push((await mesh.fetch(path, request)).status);
    return statuses;
  };

  test("each kind of key has its own rate, and each key its own bucket", async () => {
    expect(await burst(7, "/api/v2/keys")).toEqual([200, 200, 200, 200, 200, 200, 429]);
    expect(await burst(5, "/api/v2/device", { key: "device_key" })).toEqual([200, 200, 200, 200, 429]);
    expect(await burst(1, "/customer", { key: "customer" })).toEqual([200]);
  });

  test("a refusal says when to come back", async () => {
    const answer = await mesh.fetch("/api/v2/keys");
    expect(answer.status).toBe(429);
    expect(answer.headers.get("retry-after")).toBe("1");
    expect(answer.headers.get("ratelimit-policy")).toBe('"master";q=6;w=2');
    expect(answer.headers.get("ratelimit")).toMatch(/^"master";r=0;t=\d$/);
    expect(((await answer.json()) as { reason: string }).reason).toBe("rate_limited");
    await clock.advance(2_000);
    const again = await mesh.fetch("/api/v2/keys");
    expect(again.status).toBe(200);
    expect(again.headers.get("ratelimit")).toBe('"master";r=5;t=1');
  });

  test("a body costs a further token for each 4 KB, declared or not, before it is parsed", async () => {
    await clock.advance(60_000);
    const post = async (kilobytes: number, chunked: boolean) => {
      const bytes = Buffer.alloc(kilobytes * 1024, " ");
      const body = chunked ? new Blob([bytes]).stream() : bytes;
      const answer = await mesh.fetch("/api/v2/devices", {
        method: "POST",
        headers: { "content-type": "application/json" },
        body,
        duplex: "half",
      });
      await answer.body?.cancel();
      return [answer.status, answer.headers.get("ratelimit")];
    };
    expect(await post(3, false)).toEqual([400, '"master";r=5;t=1']);
    expect(await post(4, false)).toEqual([400, '"master";r=3;t=1']);
    await clock.advance(60_000);
    expect(await post(3, true)).toEqual([400, '"master";r=5;t=1']);
    expect(await post(9, true)).toEqual([400, '"master";r=2;t=2']);
    expect(await post(128, false)).toEqual([400, '"master";r=0;t=13']);
    expect(await post(1, false)).toEqual([429, '"master";r=0;t=13']);
    await clock.advance(11_000);
    expect(await post(1, false)).toEqual([400, '"master";r=1;t=2']);
  });

  test("a filter of one or two characters, which reads through the records, costs twenty tokens", async () => {
    await clock.advance(60_000);
    mesh.fakes.data.queryRecords = async () => ({ next: null, items: [] });
    const search = async (filter: string) => {
      const answer = await mesh.fetch(`/api/v2/data?filter=${encodeURIComponent(filter)}`);
      return [answer.status, answer.headers.get("ratelimit")];
    };
    expect(await search("abc")).toEqual([200, '"master";r=5;t=1']);
    expect(await search("")).toEqual([200, '"master";r=4;t=1']);
    expect(await search("\u{1F600}x")).toEqual([200, '"master";r=0;t=8']);
    expect(await search("abc")).toEqual([429, '"master";r=0;t=8']);
  });

  test("a list of devices by a condition on shadow values costs twenty tokens", async () => {
    await clock.advance(60_000);
    mesh.fakes.devices.listDevices = async () => ({ next: null, items: [] });
    const list = async (query: string) => {
      const answer = await mesh.fetch(`/api/v2/devices?limit=1${query}`);
      return [answer.status, answer.headers.get("ratelimit")];
    };
    expect(await list("")).toEqual([200, '"master";r=5;t=1']);
    expect(await list("&where=reported/on:true")).toEqual([200, '"master";r=0;t=7']);
    expect(await list("")).toEqual([429, '"master";r=0;t=7']);
  });

  test("without a key the address counts, as the trusted proxy tells it", async () => {
    const from = (address: string) => ({ key: null, headers: { "x-forwarded-for": address } });
    const path = "/newcustomer?email=ann@example.com";
    expect(await burst(3, path, from("198.51.100.7"))).toEqual([202, 202, 429]);
    expect(await burst(1, path, from("198.51.100.8"))).toEqual([202]);
    expect(await burst(3, "/api/v2/keys", from("198.51.100.9"))).toEqual([401, 401, 429]);
  });
});

test("a forwarded address is not believed unless a proxy is trusted", async () => {
  await using mesh = await startFixture({ env: { RATE_ANONYMOUS: "0.001" } });
  const statuses: number[] = [];
  for (const address of ["198.51.100.1", "198.51.100.2"]) {
    const headers = { "x-forwarded-for": address };
    statuses.push((await mesh.fetch("/newcustomer?email=a@example.com", { key: null, headers })).status);
  }
  expect(statuses).toEqual([202, 429]);
});
