import { once } from "node:events";
import { setImmediate as nextTurn } from "node:timers/promises";
import { eventually } from "@devmesh/testkit/eventually";
import { fakeDevice } from "@devmesh/testkit/fakes";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "@jest/globals";
import { record, secrets } from "./fakes.ts";
import { type Fixture, startFixture } from "./gateway-fixture.ts";

let mesh: Fixture;
beforeAll(async () => {
  mesh = await startFixture();
});
afterEach(() => mesh.fakes.reset());
afterAll(async () => mesh[Symbol.asyncDispose]());

/** Answers how many items a list has. */
type Count = () => Promise<number>;

interface Asked {
  readonly limit?: number | null | undefined;
  readonly after?: string | undefined;
  readonly skip?: number | undefined;
}

/** A list of `count` items, `perPage` at a time, whatever is wanted; notes what it was asked for. */
function listOf<T>(count: number, perPage: number, itemOf: (at: number) => T) {
  const asked: Asked[] = [];
  const page = async (input: Asked) => {
    asked.push(input);
    const from = input.skip === -1 ? count - 1 : Number(input.after ?? 0) + Math.max(input.skip ?? 0, 0);
    const upTo = Math.min(count, from + perPage, from + (input.limit ?? count));
    const items = Array.from({ length: Math.max(0, upTo - from) }, (_, at) => itemOf(from + at));
    return { next: upTo < count ? String(upTo) : null, items };
  };
  return { asked, page };
}

const devices = "/api/v2/devices";
const ids = (list: unknown) => (list as { id: unknown }[]).map(({ id }) => id);

describe("the list of devices", () => {
  test("is one array over all pages", async () => {
    const list = listOf(25, 10, (at) => fakeDevice(`d${at}`));
    mesh.fakes.devices.listDevices = list.page;
    const answer = await mesh.fetch(`${devices}?online=true&filter=d`);
    expect(ids(await answer.json())).toEqual(Array.from({ length: 25 }, (_, at) => `d${at}`));
    expect(answer.headers.get("link")).toBeNull();
    expect(list.asked).toEqual([
      { online: true, filter: "d" },
      { online: true, filter: "d", after: "10" },
      { online: true, filter: "d", after: "20" },
    ]);
  });

  test("is read by one at a time, and not at all for clients that have gone", async () => {
    const release = Promise.withResolvers<void>();
    let read = 0;
    mesh.fakes.devices.listDevices = async () => {
      read++;
      await release.promise;
      return { next: null, items: [] };
    };
    const held = mesh.fetch(devices);
    await eventually(() => read === 1);
    const leaving = new AbortController();
    const gone = Array.from({ length: 20 }, () => mesh.fetch(devices, { signal: leaving.signal }));
    // They have arrived when a later request is answered.
    expect((await mesh.fetch("/api/v2/mqtt")).status).toBe(200);
    const aborted = () => mesh.log().split('"aborted":true').length;
    const before = aborted();
    leaving.abort();
    await Promise.allSettled(gone);
    await eventually(() => aborted() === before + gone.length);
    const last = mesh.fetch(devices);
    release.resolve();
    for (const answer of [held, last]) expect((await answer).status).toBe(200);
    expect(read).toBe(2);
  });

  test.each(["filter=d", "limit=2"])(
    "waits for none with %s, of which two are read at a time",
    async (query) => {
      const release = Promise.withResolvers<void>();
      let read = 0;
      mesh.fakes.devices.listDevices = async ({ filter, limit }) => {
        if (filter !== undefined || limit !== undefined) {
          read++;
          await release.promise;
        }
        return { next: null, items: [] };
      };
      const others = Array.from({ length: 3 }, () => mesh.fetch(`${devices}?${query}`));
      await eventually(() => read === 2);
      expect((await mesh.fetch(devices)).status).toBe(200);
      expect(read).toBe(2);
      release.resolve();
      for (const answer of others) expect((await answer).status).toBe(200);
    },
  );

  test("of a client that goes away during a page is not read beyond that page", async () => {
    const release = Promise.withResolvers<void>();
    let pages = 0;
    mesh.fakes.devices.listDevices = async ({ limit, after = "0" }) => {
      if (limit !== undefined) return { next: null, items: [] };
      pages++;
      if (after === "2") await release.promise;
      return { next: String(Number(after) + 1), items: [fakeDevice(`d${after}`)] };
    };
    const answer = await mesh.open(devices);
    answer.on("error", () => undefined).resume();
    await eventually(() => pages === 3);
    const lines = mesh.log().length;
    answer.destroy();
    await eventually(() => mesh.log().slice(lines).includes('"aborted":true'));
    release.resolve();
    // A further page would be asked for before these.
    for (let nth = 0; nth < 5; nth++) expect((await mesh.fetch(`${devices}?limit=1`)).status).toBe(200);
    expect(pages).toBe(3);
  });

  test("is an empty array where there is nothing, also after empty pages", async () => {
    mesh.fakes.devices.listDevices = async () => ({ next: null, items: [] });
    expect(await (await mesh.fetch(devices)).text()).toBe("[]");
    mesh.fakes.devices.listDevices = async ({ after }) =>
      after === "2"
        ? { next: null, items: [fakeDevice("last")] }
        : { next: after === undefined ? "1" : "2", items: [] };
    expect(ids(await (await mesh.fetch(devices)).json())).toEqual(["last"]);
  });

  test("with a limit is that many over several pages, and leads on without the key", async () => {
    const list = listOf(25, 10, (at) => fakeDevice(`d${at}`, { name: '],[{"' }));
    mesh.fakes.devices.listDevices = list.page;
    const answer = await mesh.fetch(`${devices}?limit=12&filter=d`);
    expect(ids(await answer.json())).toHaveLength(12);
    expect(list.asked).toEqual([
      { limit: 12, filter: "d" },
      { limit: 2, filter: "d", after: "10" },
    ]);
    const link = answer.headers.get("link");
    expect(link).toBe(`<${devices}?limit=12&filter=d&after=12>; rel="next"`);
    const rest = await mesh.fetch(/<(.*)>/.exec(link ?? "")?.[1] ?? "");
    expect(ids(await rest.json())[0]).toBe("d12");
  });

  test("is asked for from the newest device back, and leads on in that order", async () => {
    const list = listOf(3, 10, (at) => fakeDevice(`d${at}`));
    mesh.fakes.devices.listDevices = list.page;
    const answer = await mesh.fetch(`${devices}?limit=1&order=desc`);
    expect(list.asked).toEqual([{ limit: 1, order: "desc" }]);
    expect(answer.headers.get("link")).toBe(`<${devices}?limit=1&order=desc&after=1>; rel="next"`);
    const byValue = await mesh.fetch(`${devices}?limit=1&order=-last_seen`);
    expect(byValue.headers.get("link")).toBe(`<${devices}?limit=1&order=-last_seen&after=1>; rel="next"`);
    expect((await mesh.fetch(`${devices}?order=down`)).status).toBe(400);
  });

  test("with a limit that ends it has no link", async () => {
    mesh.fakes.devices.listDevices = listOf(3, 10, (at) => fakeDevice(`d${at}`)).page;
    const answer = await mesh.fetch(`${devices}?limit=3`);
    expect(ids(await answer.json())).toHaveLength(3);
    expect(answer.headers.get("link")).toBeNull();
  });

  test("says how many devices there are that it selects, unless they cannot be counted", async () => {
    const counted: unknown[] = [];
    mesh.fakes.devices.listDevices = listOf(25, 10, (at) => fakeDevice(`d${at}`)).page;
    mesh.fakes.devices.countDevices = async () => ({ count: 25 });
    mesh.fakes.devices.facetDevices = async ({ where, facets }) => {
      counted.push([where, facets]);
      return { total: 7, facets: {}, others: {} };
    };
    const totalOf = async (query: string) =>
      (await mesh.fetch(`${devices}${query}`)).headers.get("total-count");
    expect(await totalOf("?limit=5")).toBe("25");
    expect(await totalOf("?limit=5&after=7")).toBe("25");
    expect(await totalOf("")).toBe("25");
    expect(await totalOf("?after=20")).toBe("25");
    expect(await totalOf("?limit=5&filter=d&where=label:a")).toBe("7");
    expect(await totalOf("?filter=d&where=label:a")).toBe("7");
    expect(await totalOf("?limit=5&online=false")).toBe("7");
    expect(await totalOf("?limit=5&online=false&where=online:true")).toBe("0");
    expect(counted).toEqual([
      [{ text: { all: ["d"] }, labels: { all: ["a"] } }, []],
      [{ text: { all: ["d"] }, labels: { all: ["a"] } }, []],
      [{ online: false }, []],
    ]);
    mesh.fakes.devices.countDevices = async () => {
      throw new Error("an earlier release has no such method");
    };
    expect(await totalOf("?limit=5")).toBeNull();
    expect(await totalOf("")).toBeNull();
    mesh.fakes.devices.listDevices = listOf(3, 10, (at) => fakeDevice(`d${at}`)).page;
    expect(await totalOf("?where=label:b")).toBe("3");
  });

  test("a filter beside as many words as a condition may have is refused", async () => {
    mesh.fakes.devices.listDevices = async () => ({ next: null, items: [] });
    mesh.fakes.devices.facetDevices = async () => ({ total: 0, facets: {}, others: {} });
    const beside = async (words: number) => {
      const where = JSON.stringify({ text: { all: Array(words).fill("a") } });
      return mesh.fetch(`${devices}?limit=5&filter=d&where=${encodeURIComponent(where)}`);
    };
    const counted = await beside(49);
    expect([counted.status, counted.headers.get("total-count")]).toEqual([200, "0"]);
    const refused = await beside(50);
    expect(refused.status).toBe(400);
    expect(await refused.json()).toMatchObject({ errors: [{ pointer: "/query/filter" }] });
  });

  test.each([
    ["that is longer as text", JSON.stringify({ labels: { none: Array(50).fill("x".repeat(77)) } })],
    ["with a word that begins like JSON", "label:a {b"],
  ])("leads on with a condition %s", async (_, where) => {
    mesh.fakes.devices.listDevices = listOf(3, 10, (at) => fakeDevice(`d${at}`)).page;
    const first = await mesh.fetch(`${devices}?limit=1&where=${encodeURIComponent(where)}`);
    const next = await mesh.fetch(/<(.*)>/.exec(first.headers.get("link") ?? "")?.[1] ?? "");
    expect(ids(await next.json())).toEqual(["d1"]);
  });

  test("takes a condition as text or as JSON, repeats it in its link, and says what is wrong in it", async () => {
    const list = listOf(3, 10, (at) => fakeDevice(`d${at}`));
    mesh.fakes.devices.listDevices = list.page;
    const where = { labels: { all: ["a b"] }, online: true };
    for (const given of ['label:"a b" online:true', JSON.stringify(where)]) {
      const answer = await mesh.fetch(`${devices}?limit=1&where=${encodeURIComponent(given)}`);
      expect(list.asked.pop()).toEqual({ limit: 1, where });
      expect(answer.headers.get("link")).toBe(
        `<${devices}?limit=1&where=label%3A%22a+b%22+online%3Atrue&after=1>; rel="next"`,
      );
    }
    const violationsOf = async (given: string) => {
      const answer = await mesh.fetch(`${devices}?where=${encodeURIComponent(given)}`);
      const { status, errors } = (await answer.json()) as { status: number; errors: unknown };
      return [status, errors];
    };
    const inText = {
      pointer: "/query/where",
      detail: expect.stringMatching(/^at character 8: .*true, false/),
    };
    expect(await violationsOf("online:maybe")).toEqual([400, [inText]]);
    const inJson = { pointer: "/query/where/labels/all/0", detail: expect.any(String) };
    expect(await violationsOf('{"labels":{"all":[1]}}')).toEqual([400, [inJson]]);
  });

  test("whose first page fails is a problem", async () => {
    mesh.fakes.devices.listDevices = async (_, context) => context.fail("cursor_invalid");
    const answer = await mesh.fetch(`${devices}?after=x`);
    expect(answer.status).toBe(400);
    expect(((await answer.json()) as { reason: string }).reason).toBe("cursor_invalid");
  });

  test("whose later page fails ends the connection, so that it never looks whole", async () => {
    mesh.fakes.devices.listDevices = async ({ after }) => {
      if (after !== undefined) throw new Error("the store is gone");
      return { next: "1", items: [fakeDevice("d0")] };
    };
    const answer = await mesh.fetch(devices);
    expect(answer.status).toBe(200);
    await expect(answer.text()).rejects.toThrow();
    await eventually(() => mesh.log().includes('"aborted":true'));
  });

  test("waits for a slow reader, holding one page", async () => {
    let pages = 0;
    const name = "x".repeat(256);
    mesh.fakes.devices.listDevices = async () => {
      pages++;
      return {
        next: pages < 400 ? String(pages) : null,
        items: Array.from({ length: 200 }, (_, at) => fakeDevice(`d${pages}-${at}`, { name })),
      };
    };
    const answer = await mesh.open(devices);
    await once(answer, "readable");
    let before = -1;
    // Pages stop being asked for once the buffers between the two are full.
    await eventually(
      async () => {
        const stalled = pages === before;
        before = pages;
        await nextTurn();
        return stalled;
      },
      { everyMs: 200 },
    );
    expect(pages).toBeLessThan(200);
    let bytes = 0;
    for await (const chunk of answer) bytes += (chunk as Buffer).length;
    expect(pages).toBe(400);
    expect(bytes).toBeGreaterThan(400 * 200 * 256);
  });

  test("ends its calls when the client goes away", async () => {
    let begin = (): void => undefined;
    const asked = new Promise<void>((resolve) => {
      begin = resolve;
    });
    let release = (): void => undefined;
    mesh.fakes.devices.listDevices = async ({ after }) => {
      if (after === undefined) return { next: "1", items: [fakeDevice("d0")] };
      begin();
      await new Promise<void>((resolve) => {
        release = resolve;
      });
      return { next: null, items: [] };
    };
    const answer = await mesh.open(devices);
    answer.on("error", () => undefined);
    answer.resume();
    await asked;
    const lines = mesh.log().length;
    answer.destroy();
    await eventually(() => mesh.log().slice(lines).includes('"aborted":true'));
    expect(mesh.log().slice(lines)).not.toContain('"level":50');
    release();
  });
});

describe.each([
  [
    "keys",
    "/api/v2/keys",
    (page: unknown) => Object.assign(mesh.fakes.keys, { listKeys: page }),
    (count: Count) => Object.assign(mesh.fakes.keys, { countKeys: async () => ({ count: await count() }) }),
  ],
  [
    "customers",
    "/api/v2/customers",
    (page: unknown) => Object.assign(mesh.fakes.keys, { listCustomers: page }),
    (count: Count) =>
      Object.assign(mesh.fakes.keys, { countCustomers: async () => ({ count: await count() }) }),
  ],
  [
    "dead mail",
    "/api/v2/mail/dead",
    (page: unknown) => Object.assign(mesh.fakes.mailer, { listDeadMail: page }),
    (count: Count) =>
      Object.assign(mesh.fakes.mailer, { readQueue: async () => ({ waiting: 0, dead: await count() }) }),
  ],
] as const)("the list of %s", (_, path, serve, serveCount) => {
  const itemOf = (at: number) => ({
    ...{ id: String(at), kind: "invitation", customer_id: "ann", attempts: 1, last_error: "", meta: {} },
    ...{ key: null, access: "full", device_id: null, name: null, email: "ann@example.com" },
    ...{
      created_at: time,
      updated_at: time,
      confirmed_at: null,
      last_used: null,
      expires_at: null,
      failed_at: time,
    },
  });
  const time = "2026-01-01T00:00:00.000Z";

  test("is whole without a limit; with one it leads from page to page", async () => {
    const list = listOf(5, 2, itemOf);
    serve(list.page);
    const whole = await mesh.fetch(path);
    expect(ids(await whole.json())).toEqual(["0", "1", "2", "3", "4"]);
    expect(whole.headers.get("link")).toBeNull();
    let next: string | undefined = `${path}?limit=2&access_token=${secrets.master}`;
    const pages: unknown[][] = [];
    while (next !== undefined) {
      const answer = await mesh.fetch(next);
      pages.push(ids(await answer.json()));
      const link: string | null = answer.headers.get("link");
      expect(link ?? "").not.toContain("access_token");
      next = /<(.*)>; rel="next"/.exec(link ?? "")?.[1];
    }
    expect(pages).toEqual([["0", "1"], ["2", "3"], ["4"]]);
  });

  test("says how many there are, unless they cannot be counted", async () => {
    serve(listOf(5, 2, itemOf).page);
    serveCount(async () => 5);
    const totalOf = async (query: string) => (await mesh.fetch(`${path}${query}`)).headers.get("total-count");
    expect([await totalOf("?limit=2"), await totalOf("?limit=2&after=2"), await totalOf("")]).toEqual([
      "5",
      "5",
      "5",
    ]);
    serveCount(async () => {
      throw new Error("an earlier release has no such method");
    });
    expect(await totalOf("?limit=2")).toBeNull();
  });
});

describe("stored data", () => {
  const total = 120;
  const stored = (perPage = 50) => listOf(total, perPage, (at) => record(at + 1));
  /** The cursor of a `Link` is found by asking for one record. */
  const isPage = ({ limit }: Asked) => limit !== 1;

  test("is the first hundred unless asked otherwise", async () => {
    const list = stored();
    mesh.fakes.data.queryRecords = list.page as never;
    expect(ids(await (await mesh.fetch("/api/v2/data")).json())).toHaveLength(100);
    expect(list.asked.filter(isPage)).toEqual([
      { principal: { kind: "master" }, caller: "id-master", skip: 0, limit: 100, order: "asc" },
      { principal: { kind: "master" }, caller: "id-master", skip: 0, limit: 50, order: "asc", after: "50" },
    ]);
  });

  test("a topic as records show it is refused, and one relative to the device is not", async () => {
    mesh.fakes.data.queryRecords = async () => ({ next: null, items: [] });
    const path = (topic: string) => `/api/v2/data?topic=${encodeURIComponent(topic)}`;
    for (const topic of ["db/pump", "db/pump/#", "db/pump/temp"]) {
      const ofKey = await mesh.fetch(path(topic), { key: "device_key" });
      for (const answer of [ofKey, await mesh.fetch(`${path(topic)}&device_id=pump`)]) {
        expect(answer.status).toBe(400);
        const detail = "is relative to `db/pump/`: leave that out";
        expect(await answer.json()).toMatchObject({ errors: [{ pointer: "/query/topic", detail }] });
      }
    }
    for (const topic of ["temp", "db/#", "db/pump-2/temp", "db/pumps", "+/pump/temp"])
      expect((await mesh.fetch(`${path(topic)}&device_id=pump`)).status).toBe(200);
  });

  test("skips on the first page only, and a negative skip bounds the answer", async () => {
    const list = listOf(9, 4, (at) => record(at + 1));
    mesh.fakes.data.queryRecords = list.page as never;
    const records = ids(await (await mesh.fetch("/api/v2/data?skip=-7&limit=5000&filter=a%2Bb+c")).json());
    expect(records).toHaveLength(7);
    expect(list.asked.filter(isPage)).toMatchObject([
      { skip: -7, limit: 7, filter: "a+b c" },
      { skip: 0, limit: 3, after: "4" },
    ]);
  });

  test("leads to the records that follow, without the position and the key", async () => {
    const list = listOf(9, 4, (at) => record(at + 1));
    mesh.fakes.data.queryRecords = list.page as never;
    const linkOf = async (query: string) => (await mesh.fetch(`/api/v2/data?${query}`)).headers.get("link");
    expect(await linkOf(`limit=3&filter=a%20b&access_token=${secrets.master}`)).toBe(
      '</api/v2/data?limit=3&filter=a+b&after=3>; rel="next"',
    );
    expect(await linkOf("limit=3&after=3")).toBe('</api/v2/data?limit=3&after=6>; rel="next"');
    expect(await linkOf("limit=3&after=6")).toBeNull();
    expect(await linkOf("")).toBeNull();
    expect(await linkOf("limit=0")).toBeNull();
  });

  test("of several pages is streamed, with a link to what follows all of them", async () => {
    const list = stored(4);
    mesh.fakes.data.queryRecords = list.page as never;
    const answer = await mesh.fetch("/api/v2/data?skip=5&limit=10");
    expect(ids(await answer.json())).toEqual([6, 7, 8, 9, 10, 11, 12, 13, 14, 15]);
    expect(answer.headers.get("link")).toBe('</api/v2/data?limit=10&after=15>; rel="next"');
    const rest = await mesh.fetch("/api/v2/data?skip=111&limit=10");
    expect(ids(await rest.json())).toHaveLength(9);
    expect(rest.headers.get("link")).toBeNull();
    const newest = await mesh.fetch("/api/v2/data?skip=-9&limit=6");
    await newest.text();
    expect(list.asked.filter((one) => !isPage(one)).map(({ skip }) => skip)).toEqual([14, 120, -4]);
  });

  test("found by a named query leads on, too", async () => {
    mesh.fakes.data.queryRecords = listOf(9, 4, (at) => record(at + 1)).page as never;
    const path = "/api/v2/m/device/data/known";
    const first = await mesh.fetch(`${path}?limit=2&since=PT24H`, { key: "public_key" });
    expect(ids(await first.json())).toEqual([1, 2]);
    expect(first.headers.get("link")).toBe(`<${path}?limit=2&since=PT24H&after=2>; rel="next"`);
    const second = await mesh.fetch(`${path}?limit=2&since=PT24H&after=2`, { key: "public_key" });
    expect(ids(await second.json())).toEqual([3, 4]);
  });

  test("of limit 0 is empty, after its other parameters were checked", async () => {
    mesh.fakes.data.queryRecords = async ({ limit, filter }, context) =>
      filter === "\0" ? context.fail("filter_invalid") : { next: limit === 0 ? null : "1", items: [] };
    expect(await (await mesh.fetch("/api/v2/data?limit=0")).text()).toBe("[]");
    expect((await mesh.fetch("/api/v2/data?limit=0&filter=%00")).status).toBe(400);
  });

  test("goes out as NDJSON without a limit", async () => {
    const list = stored();
    mesh.fakes.data.queryRecords = list.page as never;
    const answer = await mesh.fetch("/api/v2/data", { headers: { accept: "application/x-ndjson" } });
    expect(answer.headers.get("content-type")).toBe("application/x-ndjson");
    const lines = (await answer.text()).trimEnd().split("\n");
    expect(lines.map((line) => JSON.parse(line).id)).toEqual(
      Array.from({ length: total }, (_, at) => at + 1),
    );
    expect(list.asked[0]?.limit).toBeNull();
  });

  test("is exported up to what was stored at the beginning, however fast devices publish", async () => {
    let stored = 3;
    mesh.fakes.data.queryRecords = async ({ skip, after }) => {
      if (skip === -1) return { next: null, items: [record(stored)] };
      const id = Number(after ?? 0) + 1;
      stored += 2;
      return { next: String(id), items: [record(id)] };
    };
    const answer = await mesh.fetch("/api/v2/data", { headers: { accept: "application/x-ndjson" } });
    const lines = (await answer.text()).trimEnd().split("\n");
    expect(lines.map((line) => JSON.parse(line).id)).toEqual([1, 2, 3, 4, 5]);
  });

  test("goes out as CSV after RFC 4180, with a header line", async () => {
    const messages = ['say "hi", twice', "two\r\nlines", "1+1=2", "", "ü", "u\n"];
    mesh.fakes.data.queryRecords = async () => ({
      next: null,
      items: messages.map((message, at) =>
        record(at, { message, ...(at === 0 && { encoding: "base64" as const }) }),
      ),
    });
    const answer = await mesh.fetch("/api/v2/data", { headers: { accept: "text/csv" } });
    expect(answer.headers.get("content-type")).toContain("text/csv");
    const csv = await answer.text();
    expect(csv).toMatch(/^"?id"?,"?timestamp"?,"?device_id"?,"?topic"?,"?message"?,"?encoding"?\r\n/);
    for (const message of messages.filter((one) => one !== "")) {
      expect(csv).toContain(`"${message.replaceAll('"', '""')}"`);
    }
    expect(csv.endsWith("\r\n")).toBe(true);
  });

  test("CSV has an apostrophe before what a spreadsheet would run, and leaves numbers as they are", async () => {
    const formulas = ["=1+1", "+1+1", "-1+cmd|' /C calc'!A0", "@SUM(1)", "\uff1d1", "-", "+5 V"];
    const harmless = [
      "-5",
      "+3.2",
      "-1e-3",
      "-1,5",
      "'=1",
      "5-3",
      " =1",
      "1;-5;+3.2",
      "a; =1",
      "-5\n-6",
      "a;b\tc",
    ];
    // As a spreadsheet reads them that separates by semicolons or tabs: quotes inside a cell are text to it.
    const cells = [";=1+1;", "x;+1+1", "\t=1", "\r=1", "\n@SUM(1)", "two\r\n=1", "-5\n=1", '1;-5;-1+1;"=1"'];
    mesh.fakes.data.queryRecords = async () => ({
      next: null,
      items: [...formulas, ...harmless, ...cells].map((message, at) => record(at, { message })),
    });
    const answer = await mesh.fetch("/api/v2/data", { headers: { accept: "text/csv" } });
    const csv = await answer.text();
    for (const text of formulas) expect(csv).toContain(`,"'${text}",`);
    for (const text of cells.filter((cell) => /^[\t\r\n]/.test(cell)))
      expect(csv).toContain(`,"'${text[0]}'`);
    for (const cell of csv.split(/[;\t\r\n]/)) expect(cell).toMatch(/^(?!"*[=+@-])|^"*[+-][\d.,e-]+"*,?$/);
    expect(csv).toContain(',"1;-5;\'-1+1;""\'=1""",');
    for (const text of harmless) expect(csv).toContain(`,"${text}",`);
  });

  test("exports take any limit, answers in JSON none above 5,000", async () => {
    const list = stored();
    mesh.fakes.data.queryRecords = list.page as never;
    for (const accept of ["application/x-ndjson", "text/csv"]) {
      expect((await mesh.fetch("/api/v2/data?limit=5001", { headers: { accept } })).status).toBe(200);
    }
    expect((await mesh.fetch("/api/v2/data?limit=5001", { headers: { accept: "*/*" } })).status).toBe(400);
  });

  test.each(["image/png", "text/html,application/xhtml+xml,*/*;q=0.8", "application/json"])(
    "asked for as %s is JSON",
    async (accept) => {
      const answer = await mesh.fetch("/api/v2/data", { headers: { accept } });
      expect(answer.headers.get("content-type")).toBe("application/json");
      await answer.text();
    },
  );

  test("an export without records is empty, in CSV but for the header line", async () => {
    mesh.fakes.data.queryRecords = async () => ({ next: null, items: [] });
    const ndjson = await mesh.fetch("/api/v2/data", { headers: { accept: "application/x-ndjson" } });
    expect(await ndjson.text()).toBe("");
    const csv = await mesh.fetch("/api/v2/data", { headers: { accept: "text/csv" } });
    expect((await csv.text()).split("\r\n")).toHaveLength(2);
  });
});

describe("the newest record of each topic", () => {
  const topics = listOf(5, 2, (at) => record(at));

  test("comes with a link to the topics that follow, and their number", async () => {
    mesh.fakes.data.readLatest = topics.page;
    mesh.fakes.data.countTopics = async () => ({ count: 5 });
    const answer = await mesh.fetch(`${devices}/pump/latest?limit=3`);
    expect(ids(await answer.json())).toEqual([0, 1, 2]);
    expect(answer.headers.get("link")).toBe(`<${devices}/pump/latest?limit=3&after=3>; rel="next"`);
    expect(answer.headers.get("total-count")).toBe("5");
    const rest = await mesh.fetch(`${devices}/pump/latest?limit=3&after=3`);
    expect(ids(await rest.json())).toEqual([3, 4]);
    expect(rest.headers.get("link")).toBeNull();
    expect((await mesh.fetch(`${devices}/pump/latest?limit=1001`)).status).toBe(400);
  });

  test("is asked for 200 topics by default, as the key that asks", async () => {
    const asked: unknown[] = [];
    mesh.fakes.data.readLatest = async (input) => {
      asked.push(input);
      return { next: null, items: [] };
    };
    await (await mesh.fetch(`${devices}/pump/latest`)).text();
    await (await mesh.fetch("/api/v2/device/latest", { key: "device_key" })).text();
    const request = { device_id: "pump", limit: 200 };
    expect(asked).toEqual([
      { ...request, principal: { kind: "master" }, caller: "id-master" },
      { ...request, principal: { kind: "device_key", device_id: "pump" }, caller: "id-device_key" },
    ]);
  });

  test("of an id that is no device is 404", async () => {
    for (const id of ["gone", "-"]) {
      const answer = await mesh.fetch(`${devices}/${id}/latest`);
      expect([answer.status, await answer.json()]).toMatchObject([404, { reason: "device_not_found" }]);
    }
  });

  test("is a member of the device of a device key that asks for it", async () => {
    mesh.fakes.data.readLatest = topics.page;
    const ask = (query: string) => mesh.fetch(`/api/v2/device${query}`, { key: "device_key" });
    expect(await (await ask("")).json()).not.toHaveProperty("latest");
    expect(await (await ask("?latest=false")).json()).not.toHaveProperty("latest");
    const answer = await ask("?latest=true");
    const { latest, ...device } = (await answer.json()) as { latest: unknown };
    expect(ids(latest)).toEqual([0, 1]);
    expect(device).toEqual(await (await ask("")).json());
    expect(answer.headers.get("link")).toBe('</api/v2/device/latest?limit=200&after=2>; rel="next"');
  });
});

test("a key whose large answers nobody reads gets no more of them until they are read or given up", async () => {
  await using bounded = await startFixture({ env: { MASTER_LARGE_ANSWERS: "3" } });
  const name = "x".repeat(256);
  bounded.fakes.devices.listDevices = async ({ after = "0", filter }) => ({
    next: filter === undefined && Number(after) < 400 ? String(Number(after) + 1) : null,
    items: Array.from({ length: filter === "few" ? 2 : 200 }, (_, at) =>
      fakeDevice(`d${after}-${at}`, { name }),
    ),
  });
  const unread = [await bounded.open(devices), await bounded.open(devices), await bounded.open(devices)];
  // One page is large, too, unless it holds a few.
  for (const path of [devices, `${devices}?filter=many`]) {
    const refused = await bounded.fetch(path);
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([429, "5"]);
    expect(await refused.json()).toMatchObject({ reason: "too_many_answers" });
  }
  expect((await bounded.fetch(`${devices}?filter=few`)).status).toBe(200);

  unread[0]?.on("error", () => undefined).destroy();
  await eventually(async () => (await bounded.fetch(`${devices}?filter=many`)).status === 200);
  for (const answer of unread) answer.on("error", () => undefined).destroy();
});
