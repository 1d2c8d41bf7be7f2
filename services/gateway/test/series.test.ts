import type { data } from "@devmesh/contracts/data";
import { defaultAcl } from "@devmesh/contracts/model/acl";
import type { CallInput } from "@devmesh/service-kit/rpc/implementation";
import { fakeDevice } from "@devmesh/testkit/fakes";
import { openWebSocket } from "@devmesh/testkit/notification-client";
import { afterAll, afterEach, beforeAll, expect, test } from "@jest/globals";
import { secrets } from "./fakes.ts";
import { type Fixture, startFixture } from "./gateway-fixture.ts";

let mesh: Fixture;
beforeAll(async () => {
  mesh = await startFixture();
});
afterEach(() => mesh.fakes.reset());
afterAll(async () => mesh[Symbol.asyncDispose]());

type Query = CallInput<typeof data, "readSeries">;

const hour = 3_600_000;
const start = Date.parse("2026-01-31T10:00:00.000Z");
const at = (hours: number) => new Date(start + hours * hour).toISOString();
const span = (hours: number, value: number | null, count = 2) => ({
  start: start + hours * hour,
  count: value === null ? 0 : count,
  min: value,
  max: value === null ? null : value + 2,
  sum: value === null ? null : count * (value + 1),
  first: value,
  last: value,
});

/** Answers two spans to each question; returns what was asked. */
function answerSeries(): Query[] {
  const asked: Query[] = [];
  mesh.fakes.data.readSeries = async (query) => {
    asked.push(query);
    const value = query.device_id === "fan" ? 5 : 20;
    return {
      every: "PT1H",
      from: at(0),
      until: at(2),
      partial: true,
      spans: [span(0, value), span(1, null)],
    };
  };
  return asked;
}

const path = "/api/v2/series";

test("numbers of several devices and pointers are one answer, in their order", async () => {
  const asked = answerSeries();
  const answer = await mesh.fetch(
    `${path}?device_id=pump,fan&topic=temp&pointer=/a,b,/c&from=${at(0)}&every=PT1H`,
  );
  expect([answer.status, answer.headers.get("content-type")]).toEqual([200, "application/json"]);
  const points = (value: number) => [
    [at(0), value + 1, value, value + 2],
    [at(1), null, null, null],
  ];
  expect(await answer.json()).toEqual({
    ...{ every: "PT1H", from: at(0), until: at(2), fn: ["avg", "min", "max"], partial: true },
    series: [
      { device_id: "pump", pointer: "/a,b", topic: "temp", points: points(20) },
      { device_id: "pump", pointer: "/c", topic: "temp", points: points(20) },
      { device_id: "fan", pointer: "/a,b", topic: "temp", points: points(5) },
      { device_id: "fan", pointer: "/c", topic: "temp", points: points(5) },
    ],
  });
  expect(asked[0]).toMatchObject({ caller: "id-master", from: at(0), every: "PT1H", tz: "UTC", fill: false });
});

test("numbers of one day of messages that are numbers are asked for by default, and of a device key's device", async () => {
  const asked = answerSeries();
  const answer = await mesh.fetch(`${path}?topic=temp&fn=count`, { key: "device_key" });
  expect(await answer.json()).toMatchObject({
    fn: ["count"],
    series: [
      {
        points: [
          [at(0), 2],
          [at(1), 0],
        ],
      },
    ],
  });
  const [query] = asked;
  expect(query).toMatchObject({
    device_id: "pump",
    pointer: "",
    every: "auto",
    principal: { kind: "device_key" },
  });
  expect(Date.parse(query?.until ?? "") - Date.parse(query?.from ?? "")).toBe(24 * hour);
});

test("numbers of devices that meet a condition are answered, at most of a hundred", async () => {
  const asked = answerSeries();
  let ids = ["pump", "fan"];
  mesh.fakes.devices.selectDevices = async () => ({ next: null, items: ids });
  const url = `${path}?where=label:roof&topic=temp`;
  expect((await (await mesh.fetch(url)).json()) as object).toMatchObject({
    series: [{ device_id: "pump" }, {}],
  });
  expect(asked).toHaveLength(2);
  ids = Array.from({ length: 101 }, (_, nth) => `d${nth}`);
  const refused = await mesh.fetch(url);
  const detail = "101 devices and 1 pointers are more than 100 series";
  expect([refused.status, await refused.json()]).toMatchObject([
    400,
    { errors: [{ pointer: "/query/where", detail }] },
  ]);
  ids = [];
  expect(await (await mesh.fetch(url)).json()).toMatchObject({ every: "auto", series: [] });
});

test("what is wrong with a query is listed where it is", async () => {
  answerSeries();
  for (const [query, pointer] of [
    ["topic=temp", "/query/device_id"],
    ["device_id=pump&where=label:a&topic=temp", "/query/device_id"],
    ["device_id=pump", "/query/topic"],
    ["device_id=pump&topic=temp/%23", "/query/topic"],
    ["device_id=pump&topic=temp&pointer=a", "/query/pointer/0"],
    ["device_id=pump&topic=temp&every=PT0S", "/query/every"],
    ["device_id=pump&topic=temp&fn=median", "/query/fn/0"],
    ["device_id=pump&topic=temp&from=yesterday", "/query/from"],
    ["device_id=pump,&topic=temp", "/query/device_id/1"],
  ]) {
    const answer = await mesh.fetch(`${path}?${query}`);
    expect([query, answer.status, await answer.json()]).toMatchObject([
      query,
      400,
      { errors: [{ pointer }] },
    ]);
  }
  mesh.fakes.data.readSeries = async (_, context) =>
    context.fail("series_range_invalid", [
      { pointer: "/query/every", detail: "has more than 2000 points in this range; PT1H has fewer" },
    ]);
  const refused = await mesh.fetch(`${path}?device_id=pump&topic=temp`);
  const expected = { reason: "series_range_invalid", errors: [{ pointer: "/query/every" }] };
  expect([refused.status, await refused.json()]).toMatchObject([400, expected]);
});

test("in CSV each span is a line, and each series has its columns, without formulas", async () => {
  answerSeries();
  const url = `${path}?device_id=pump,fan&topic=temp&pointer=/c&fn=avg,last`;
  const answer = await mesh.fetch(url, { headers: { accept: "text/csv" } });
  expect(answer.headers.get("content-type")).toBe("text/csv; charset=utf-8; header=present");
  expect(await answer.text()).toBe(
    [
      "time,pump temp/c avg,pump temp/c last,fan temp/c avg,fan temp/c last",
      `${at(0)},21,20,6,5`,
      `${at(1)},,,,`,
      "",
    ].join("\r\n"),
  );
});

test("the holder of a public key reads numbers at the pointers of a named query, none from before its begin", async () => {
  const asked = answerSeries();
  const run = (name: string, query = "", accept = "application/json") =>
    mesh.fetch(`/api/v2/m/device/series/${name}${query}`, { key: "public_key", headers: { accept } });
  const answer = await run("known", "?from=P30D&every=PT1H&fn=sum");
  expect([answer.status, await answer.json()]).toMatchObject([
    200,
    { fn: ["sum"], series: [{ device_id: "pump", topic: "temp", pointer: "/celsius" }] },
  ]);
  const [query] = asked;
  expect(query).toMatchObject({
    ...{ principal: { kind: "public_key", device_id: "pump" }, caller: "id-public_key" },
    ...{ device_id: "pump", topic: "temp", pointer: "/celsius", every: "PT1H" },
  });
  expect(query?.from).toBe(query?.not_before);
  expect(Date.parse(query?.until ?? "") - Date.parse(query?.from ?? "")).toBe(24 * hour);
  const from = new Date(Date.now() - hour).toISOString();
  expect(await (await run("known", `?from=${from}`, "text/csv")).text()).toMatch(/^time,pump temp/);
  expect(asked[1]).toMatchObject({ from });
  for (const [name, status, reason] of [
    ["records", 403, "series_not_permitted"],
    ["other", 404, "query_not_found"],
    ["a%20b", 404, "query_not_found"],
  ] as const) {
    const refused = await run(name);
    expect([refused.status, await refused.json()]).toMatchObject([status, { reason }]);
  }
  expect(asked).toHaveLength(2);
});

test("pointers of an ACL are in the answer to its creation, and in frames", async () => {
  const acl = { ...defaultAcl, queries: { day: { topic: "temp", pointers: ["/celsius"] } } };
  const created = await mesh.fetch("/api/v2/devices", { json: { id: "meter", acl } });
  expect([created.status, await created.json()]).toMatchObject([201, { id: "meter", acl }]);
  const stream = await openWebSocket(mesh.url, "/api/v2/notify", { key: secrets.master });
  const device = { ...fakeDevice("meter"), acl };
  await mesh.deviceEvents.updated({ id: "meter", timestamp: at(0), device, acl });
  expect((await stream.heard(1))[0]?.data).toEqual(device);
});

test("the series of a device are listed, with the number of what is in none", async () => {
  const one = { topic: "temp", pointer: "/c", first_at: at(0), last_at: at(1), last: 21 };
  mesh.fakes.data.listSeries = async () => ({ series: [one], left_out: 3 });
  const listed = await mesh.fetch("/api/v2/devices/pump/series");
  expect([await listed.json(), listed.headers.get("left-out")]).toEqual([[one], "3"]);
  expect((await mesh.fetch("/api/v2/devices/gone/series")).status).toBe(404);
  const own = await mesh.fetch("/api/v2/device/series", { key: "device_key" });
  expect([own.status, await own.json()]).toEqual([200, [one]]);
});
