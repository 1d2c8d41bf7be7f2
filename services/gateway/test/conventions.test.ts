import { request } from "node:http";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { Problem } from "@devmesh/contracts/rest/problem";
import { fakeDevice } from "@devmesh/testkit/fakes";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "@jest/globals";
import { secrets } from "./fakes.ts";
import { type Fixture, startFixture } from "./gateway-fixture.ts";

let mesh: Fixture;
beforeAll(async () => {
  mesh = await startFixture();
});
afterEach(() => mesh.fakes.reset());
afterAll(async () => mesh[Symbol.asyncDispose]());

async function problemOf(answer: Response): Promise<Problem> {
  expect(answer.headers.get("content-type")).toBe("application/problem+json");
  return Problem.parse(await answer.json());
}

const devices = "/api/v2/devices";

describe("a key", () => {
  test.each([
    ["Authorization header", devices, { authorization: `Bearer ${secrets.master}` }],
    ["Authorization header in any case", devices, { authorization: `bEARER  ${secrets.master}` }],
    ["access_token", `${devices}?access_token=${secrets.master}`, {}],
    [
      "both, when they are the same",
      `${devices}?access_token=${secrets.master}`,
      { authorization: `Bearer ${secrets.master}` },
    ],
  ])("is taken from %s", async (_, path, headers) => {
    expect((await mesh.fetch(path, { key: null, headers })).status).toBe(200);
  });

  test.each([
    ["Basic", `Basic ${btoa("ann:secret")}`],
    ["no scheme", secrets.master],
    ["no token", "Bearer"],
    ["two tokens", `Bearer ${secrets.master} x`],
    ["an unknown key", "Bearer mk_ffffffffffffffffffffffffffffffff"],
    ["an endless key", `Bearer ${"x".repeat(5000)}`],
  ])("that is %s is 401", async (_, authorization) => {
    const answer = await mesh.fetch(devices, { key: null, headers: { authorization } });
    expect(answer.status).toBe(401);
    expect(answer.headers.get("www-authenticate")).toBe("Bearer");
    const { reason, request_id, error, detail, type } = await problemOf(answer);
    expect(["key_missing", "key_invalid"]).toContain(reason);
    expect(request_id).toBe(answer.headers.get("x-request-id"));
    expect(error).toEqual({ code: 401, message: detail });
    expect(type).toBe(`/docs/errors#${reason}`);
  });

  test("given in two ways that differ is 400", async () => {
    const answer = await mesh.fetch(`${devices}?access_token=${secrets.customer}`);
    expect(answer.status).toBe(400);
    expect((await problemOf(answer)).reason).toBe("key_ambiguous");
  });

  test("given in two headers that differ is 400, in two that agree it is taken", async () => {
    const say = (...keys: string[]) =>
      new Promise<number | undefined>((resolve, reject) => {
        const headers = keys.flatMap((key) => ["Authorization", `Bearer ${key}`]);
        request(`${mesh.url}${devices}`, { headers: ["Host", "mesh", ...headers] }, (answer) => {
          answer.resume();
          resolve(answer.statusCode);
        })
          .on("error", reject)
          .end();
      });
    expect(await say(secrets.master, secrets.customer)).toBe(400);
    expect(await say(secrets.master, secrets.master)).toBe(200);
  });

  test("given twice in the URL is 400, and is not repeated in the answer", async () => {
    const token = `access_token=${secrets.master}`;
    const answer = await mesh.fetch(`${devices}?${token}&${token}`, { key: null });
    expect(answer.status).toBe(400);
    const body = await answer.text();
    expect(body).toContain("/query/access_token");
    expect(body).not.toContain(secrets.master);
  });

  test("never shows in logs or metrics, wherever it was put", async () => {
    const paths = [
      `${devices}?access_token=${secrets.master}`,
      `${devices}/${secrets.master}?access_token=${secrets.master}`,
      `/nowhere/${secrets.master}?access_token=${secrets.master}`,
      `/newcustomer?access_token=${secrets.master}&email=x`,
      `${devices}?access_token=${secrets.master}%zz`,
      `/confirm?token=${secrets.master}`,
      `/%zz?access_token=${secrets.master}`,
    ];
    for (const path of paths) await (await mesh.fetch(path, { key: null })).text();
    mesh.fakes.devices.listDevices = async () => {
      throw new Error("a fault inside");
    };
    await (await mesh.fetch(paths[0] ?? "", { key: null })).text();
    for (const secret of Object.values(secrets)) {
      expect(mesh.log()).not.toContain(secret);
      expect(await mesh.metrics.registry.metrics()).not.toContain(secret);
    }
    expect(mesh.log()).toContain('"route":"/api/v2/devices/:id"');
    expect(await mesh.metrics.registry.metrics()).toContain('route="(unknown)"');
  });
});

describe("an answer", () => {
  test("carries the request id that was sent, when it is well-formed", async () => {
    const good = await mesh.fetch(devices, { headers: { "x-request-id": "My.id_7-" } });
    expect(good.headers.get("x-request-id")).toBe("My.id_7-");
    for (const bad of ["a b", "x".repeat(129), "a/b", "ü"]) {
      const answer = await mesh.fetch(devices, { headers: { "x-request-id": encodeURI(bad) } });
      expect(answer.headers.get("x-request-id")).toMatch(/^[0-9a-f]{32}$/);
    }
  });

  test.each([
    ["continues the trace of a proxy that is trusted into the mesh", "1", true],
    ["begins a trace where no proxy is trusted", "off", false],
  ])("%s, with the request id", async (_, trustProxy, continued) => {
    await using other = await startFixture({ env: { TRUST_PROXY: trustProxy } });
    const seen: string[] = [];
    other.fakes.devices.listDevices = async (_, { trace, requestId }) => {
      seen.push(trace.traceId, requestId ?? "");
      return { next: null, items: [] };
    };
    const traceId = "0af7651916cd43dd8448eb211c80319c";
    const traceparent = `00-${traceId}-b7ad6b7169203331-01`;
    await other.fetch(devices, { headers: { traceparent, "x-request-id": "r1" } });
    expect(seen).toEqual([continued ? traceId : expect.not.stringContaining(traceId), "r1"]);
  });

  test("is not to be stored, not to be sniffed, and says nothing of Express", async () => {
    const { headers } = await mesh.fetch(devices);
    expect(headers.get("cache-control")).toBe("no-store");
    expect(headers.get("x-content-type-options")).toBe("nosniff");
    expect(headers.get("x-powered-by")).toBeNull();
    expect(headers.get("access-control-allow-origin")).toBeNull();
  });

  test("passes the owner's bytes on, unknown members and all", async () => {
    mesh.fakes.devices.readDevice = async () => ({
      etag: '"7\\u"',
      device: { id: "pump", odd: '"}],{"', big: 1e21 } as never,
    });
    const answer = await mesh.fetch(`${devices}/pump`);
    expect(answer.headers.get("etag")).toBe('"7\\u"');
    expect(await answer.text()).toBe('{"id":"pump","odd":"\\"}],{\\"","big":1e+21}');
  });

  test("says what failed inside without a word of it", async () => {
    mesh.fakes.devices.readDevice = async () => {
      throw new Error("SQLITE_IOERR at /var/lib/devmesh/x.db");
    };
    const answer = await mesh.fetch(`${devices}/pump`);
    expect(answer.status).toBe(500);
    const body = await answer.text();
    expect(body).not.toMatch(/SQLITE|\/var|Error:|\.ts/);
    expect(JSON.parse(body).reason).toBe("internal");
  });
});

describe("a path", () => {
  test.each(["/api/v2/nothing", "/api/v3/devices", "/API/v2/devices", "/api/v2/devices/pump/rpc"])(
    "%s that is unknown is 404",
    async (path) => {
      const answer = await mesh.fetch(path);
      expect(answer.status).toBe(404);
      expect((await problemOf(answer)).reason).toBe("route_not_found");
    },
  );

  test.each(["/", "/docs", "/docs/errors", "/api/v2/openapi.json", "/api/v2/asyncapi.json"])(
    "%s that is for reading alone is 405 for anything else",
    async (path) => {
      const answer = await mesh.fetch(path, { method: "POST", key: null });
      expect(answer.status).toBe(405);
      expect(answer.headers.get("allow")).toBe("GET, HEAD");
      expect((await problemOf(answer)).reason).toBe("method_not_allowed");
    },
  );

  test("that cannot be decoded is 400", async () => {
    const answer = await mesh.fetch(`${devices}/%C3`);
    expect(answer.status).toBe(400);
    expect((await problemOf(answer)).reason).toBe("path_malformed");
  });

  test.each([
    ["GET", "/api/v2/devices/no.such", "device_not_found"],
    ["POST", "/api/v2/devices/db", "device_not_found"],
    ["DELETE", `/api/v2/devices/${"x".repeat(65)}`, "device_not_found"],
    ["POST", "/api/v2/devices/a%2Fb/rpc/F", "device_not_found"],
    ["DELETE", `/api/v2/keys/${"x".repeat(129)}`, "key_not_found"],
    ["DELETE", `/api/v2/customers/${"x".repeat(129)}`, "customer_not_found"],
    ["POST", `/api/v2/mail/dead/${"x".repeat(129)}/retry`, "mail_not_found"],
  ])("%s %s names what cannot exist: 404", async (method, path, reason) => {
    const answer = await mesh.fetch(path, { method });
    expect(answer.status).toBe(404);
    expect((await problemOf(answer)).reason).toBe(reason);
  });

  test("with a function name that cannot be one is 400", async () => {
    const answer = await mesh.fetch(`${devices}/pump/rpc/a%20b`, { method: "POST" });
    expect(answer.status).toBe(400);
    expect((await problemOf(answer)).errors).toEqual([
      { pointer: "/path/func", detail: expect.stringContaining("1 to 128") },
    ]);
  });
});

test.each([5, "abc", true, null])(
  "a dry run of a job refuses the parameters %j, as the job would be",
  async (params) => {
    const job = { target: { where: {} }, action: { kind: "rpc", func: "Echo", params } };
    const answer = await mesh.fetch("/api/v2/jobs?dry_run=true", { method: "POST", json: job });
    expect(answer.status).toBe(400);
    expect(await problemOf(answer)).toMatchObject({
      reason: "job_invalid",
      errors: [{ pointer: "/action/params" }],
    });
  },
);

describe("a body", () => {
  const post = (body: string | Uint8Array<ArrayBuffer>, type = "application/json") =>
    mesh.fetch(devices, { method: "POST", body, headers: { "content-type": type } });

  test.each(["{", "nope", "", " ", "\u0000", '{"id":"a"} x', "\ufeff{}"])(
    "%j that is not JSON is 400",
    async (body) => {
      const answer = await post(body);
      // An empty body is none, and none is needed here.
      if (body === "") expect(answer.status).toBe(201);
      else {
        expect(answer.status).toBe(400);
        expect((await problemOf(answer)).reason).toBe("body_malformed");
      }
    },
  );

  test("that is not UTF-8 is 400", async () => {
    const answer = await post(new Uint8Array([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]));
    expect((await problemOf(answer)).reason).toBe("body_malformed");
  });

  test.each([
    '{"name":"\\ud800"}',
    '{"name":"\\uDE00\\ud83d"}',
    '{"\\udfff":1}',
    '{"acl":{"rpc":["\\uDBFF"]}}',
  ])("%s that UTF-8 cannot write is 400", async (body) => {
    const answer = await post(body);
    expect(answer.status).toBe(400);
    expect((await problemOf(answer)).reason).toBe("body_malformed");
  });

  test.each(['{"name":"\\ud83d\\ude00"}', '{"name":"\\\\ud800"}', '{"name":"😀"}'])(
    "%s is read",
    async (body) => {
      expect((await post(body)).status).toBe(201);
    },
  );

  test.each(["1e400", "9".repeat(400), "9007199254740993", "-89490200001234567891", "9.007199254740993e15"])(
    "with the number %s, which no double holds, is 400 with a pointer to it, and reaches nobody",
    async (number) => {
      let asked = 0;
      mesh.fakes.devices.patchDevice = async () => {
        asked++;
        return { etag: '"1"', device: fakeDevice("pump") as never };
      };
      const answer = await mesh.fetch(`${devices}/pump`, {
        method: "POST",
        body: `{"shadow":{"state":{"desired":{"a":[${number}]}}}}`,
        headers: { "content-type": "application/json" },
      });
      expect(answer.status).toBe(400);
      const problem = await problemOf(answer);
      expect([problem.reason, problem.errors?.map(({ pointer }) => pointer)]).toEqual([
        "body_malformed",
        ["/shadow/state/desired/a/0"],
      ]);
      expect(problem.detail).toContain("`/shadow/state/desired/a/0`: is a number");
      expect(asked).toBe(0);
    },
  );

  test.each([
    [25_000, 413],
    [20_000, 200],
  ])("with %i numbers such as 1e20, which JSON writes again with 21 digits, is %i", async (count, status) => {
    mesh.fakes.devices.patchDevice = async () => ({ etag: '"1"', device: fakeDevice("pump") as never });
    const answer = await mesh.fetch(`${devices}/pump`, {
      method: "POST",
      body: `{"shadow":{"state":{"desired":{"a":[${Array(count).fill("1e20").join(",")}]}}}}`,
      headers: { "content-type": "application/json" },
    });
    expect(answer.status).toBe(status);
    if (status === 413) expect((await problemOf(answer)).reason).toBe("body_too_large");
  });

  test.each(["1e308", "1e-400", "0.1e100", '"1e400"', "9007199254740992", '"9007199254740993"'])(
    "with %s is read",
    async (value) => {
      mesh.fakes.devices.patchDevice = async () => ({ etag: '"1"', device: fakeDevice("pump") as never });
      const answer = await mesh.fetch(`${devices}/pump`, {
        method: "POST",
        body: `{"shadow":{"state":{"desired":{"a":${value}}}}}`,
        headers: { "content-type": "application/json" },
      });
      expect(answer.status).toBe(200);
    },
  );

  test.each([
    ["text/plain", "x", 415, "unsupported_media_type"],
    ["application/json", "x", 400, "body_malformed"],
    ["application/json", '{"token":"mine"}', 400, "invalid_request"],
    ["application/json", "null", 400, "invalid_request"],
    ["application/json", `{"a":"${"x".repeat(512 * 1024)}"}`, 413, "body_too_large"],
  ])("of %s for a route that takes none is checked as any other", async (type, body, status, reason) => {
    const answer = await mesh.fetch(`${devices}/pump/token`, {
      method: "POST",
      body,
      headers: { "content-type": type },
    });
    expect(answer.status).toBe(status);
    expect((await problemOf(answer)).reason).toBe(reason);
  });

  test("of an empty object is none for a route that takes none", async () => {
    expect((await mesh.fetch(`${devices}/pump/token`, { json: {} })).status).toBe(200);
  });

  test("that is needed and missing is 400", async () => {
    const answer = await mesh.fetch(`${devices}/pump`, { method: "POST" });
    expect(answer.status).toBe(400);
    expect((await problemOf(answer)).reason).toBe("body_missing");
  });

  test.each([
    "text/plain",
    "application/x-www-form-urlencoded",
    "application/json; charset=latin1",
    "application/json; charset=utf88",
    "application/json; profile=x; charset=utf-16",
    "application/json, text/plain",
    "text/json",
  ])("declared as %s is 415", async (type) => {
    const answer = await post("{}", type);
    expect(answer.status).toBe(415);
    expect((await problemOf(answer)).reason).toBe("unsupported_media_type");
  });

  test.each([
    "application/json",
    "application/json; charset=UTF-8",
    "application/json;charset=utf8",
    'application/json; charset="UTF8"; profile=x',
    'application/json; profile="x"; charset="utf-8"',
    "application/json;",
    "application/merge-patch+json",
    "APPLICATION/JSON",
  ])("declared as %s is read", async (type) => {
    expect((await post("{}", type)).status).toBe(201);
  });

  test("that is compressed is 415", async () => {
    const answer = await mesh.fetch(devices, { json: {}, headers: { "content-encoding": "gzip" } });
    expect(answer.status).toBe(415);
  });

  test("over 512 KB is 413, with and without a declared length", async () => {
    const big = JSON.stringify({ name: "x".repeat(512 * 1024) });
    const declared = await post(big);
    expect(declared.status).toBe(413);
    expect((await problemOf(declared)).reason).toBe("body_too_large");
    const chunked = await fetch(`${mesh.url}${devices}`, {
      method: "POST",
      body: new Blob([big]).stream(),
      duplex: "half",
      headers: { authorization: `Bearer ${secrets.master}`, "content-type": "application/json" },
    } as RequestInit);
    expect(chunked.status).toBe(413);
    expect((await problemOf(chunked)).reason).toBe("body_too_large");
  });

  test("a body of more than 20,000 members is refused before it is parsed, however they are arranged", async () => {
    const post = (body: string) =>
      mesh.fetch(devices, { method: "POST", body, headers: { "content-type": "application/json" } });
    const named = (count: number) => `{${Array.from({ length: count }, (_, at) => `"m${at}":1`).join()}}`;
    const refused = await post(named(20_001));
    expect(refused.status).toBe(413);
    expect((await problemOf(refused)).reason).toBe("body_too_large");
    const nested = `[${Array.from({ length: 201 }, () => named(100)).join()}]`;
    expect((await post(nested)).status).toBe(413);
    expect((await post(named(20_000))).status).toBe(400);
  });

  test.each([
    ["objects", '{"a":', "1", "}"],
    ["arrays", "[", "", "]"],
  ])("of %s nested without end is 400 and reaches nobody", async (_, open, core, close) => {
    let asked = 0;
    mesh.fakes.devices.patchDevice = async () => {
      asked++;
      return { etag: '"1"', device: fakeDevice("pump") as never };
    };
    const write = (depth: number) =>
      mesh.fetch(`${devices}/pump`, {
        method: "POST",
        body: `{"shadow":{"state":{"desired":{"app":${open.repeat(depth)}${core}${close.repeat(depth)}}}}}`,
        headers: { "content-type": "application/json" },
      });
    for (const depth of [197, 5_000, 50_000]) {
      const answer = await write(depth);
      expect(answer.status).toBe(400);
      expect((await problemOf(answer)).reason).toBe("body_too_deep");
    }
    expect(asked).toBe(0);
    await write(196);
    expect(asked).toBe(1);
  });

  test("with unknown members is refused with each of them, and every other fault", async () => {
    const answer = await mesh.fetch(devices, {
      json: { nam: "x", id: "a b", shadow: { state: { desierd: {} } }, acl: { read: ["no"] } },
    });
    expect(answer.status).toBe(400);
    const { errors, reason, detail, error } = await problemOf(answer);
    expect(reason).toBe("invalid_request");
    expect(detail).toBe(`\`${errors?.[0]?.pointer}\`: ${errors?.[0]?.detail} (and 3 more, see \`errors\`).`);
    expect(error.message).toBe(detail);
    expect(errors?.map(({ pointer }) => pointer).sort()).toEqual([
      "/acl/read/0",
      "/id",
      "/nam",
      "/shadow/state/desierd",
    ]);
  });

  test.each([devices, `${devices}/pump`])(
    "of %s is refused with what only the owner of shadows would find as well",
    async (path) => {
      const answer = await mesh.fetch(path, {
        method: "POST",
        body: '{"nam":1,"shadow":{"metadata":{},"state":{"reported":{"online":true},"desired":{"a":[{"__proto__":1}]}}}}',
        headers: { "content-type": "application/json" },
      });
      expect((await problemOf(answer)).errors?.map(({ pointer }) => pointer).sort()).toEqual([
        "/nam",
        "/shadow/metadata",
        "/shadow/state/desired/a/0/__proto__",
        "/shadow/state/reported/online",
      ]);
    },
  );

  test("with a member named __proto__ is refused", async () => {
    const answer = await post('{"__proto__":{"x":1}}');
    expect(answer.status).toBe(400);
    expect((await problemOf(answer)).errors?.[0]?.pointer).toBe("/__proto__");
  });

  test("of a shadow write reaches its owner as it came", async () => {
    let patch = "";
    mesh.fakes.devices.patchDevice = async (input) => {
      patch = JSON.stringify(input);
      return { etag: '"1"', device: fakeDevice("pump") as never };
    };
    const body = '{"shadow":{"state":{"desired":{"__proto__":1,"app":null}}}}';
    await mesh.fetch(`${devices}/pump`, {
      method: "POST",
      body,
      headers: { "content-type": "application/json", "if-match": '"7"' },
    });
    expect(JSON.parse(patch)).toMatchObject({ id: "pump", principal: { kind: "master" }, if_match: '"7"' });
    expect(patch).toContain(body);
  });
});

describe("query parameters", () => {
  test.each([
    ["/api/v2/data?limit=5001", ["/query/limit"]],
    ["/api/v2/data?limit=-1&skip=x&since=yesterday", ["/query/limit", "/query/since", "/query/skip"]],
    ["/api/v2/data?limit=1e3", ["/query/limit"]],
    ["/api/v2/data?limit=9007199254740992", ["/query/limit"]],
    ["/api/v2/data?skip=1000001", ["/query/skip"]],
    ["/api/v2/data?limit=1&limit=1", ["/query/limit"]],
    ["/api/v2/data?filter=%ff", ["/query/filter"]],
    ["/api/v2/devices?limit=0&online=yes", ["/query/limit", "/query/online"]],
    ["/newcustomer", ["/query/email"]],
    ["/newcustomer?email=nobody", ["/query/email"]],
    ["/newcustomer?email=a@example.com&email=b@example.com", ["/query/email"]],
    ["/api/v2/devices/pump/rpc/F?timeout=99", ["/query/timeout"]],
    ["/api/v2/devices/pump/rpc/F?timeout=60001", ["/query/timeout"]],
    ["/api/v2/data?filtr=temp&lim/it=1&skip=x", ["/query/filtr", "/query/lim~1it", "/query/skip"]],
    ["/api/v2/keys?_=1", ["/query/_"]],
    ["/api/v2/devices/pump?fields=id", ["/query/fields"]],
    ["/newcustomer?email=ann@example.com&mail=x", ["/query/mail"]],
  ])("%s is 400 and lists what is wrong", async (path, pointers) => {
    const answer = await mesh.fetch(path);
    expect(answer.status).toBe(400);
    expect((await problemOf(answer)).errors?.map(({ pointer }) => pointer).sort()).toEqual(pointers);
  });

  test("may hold the key on each route, and anything on the link of a mail", async () => {
    const token = `access_token=${secrets.master}`;
    for (const path of ["/api/v2/devices", "/api/v2/keys", "/api/v2/devices/pump", "/api/v2/data"])
      expect((await mesh.fetch(`${path}?${token}`, { key: null })).status).toBe(200);
    const invitation = `/newcustomer?email=ann@example.com&${token}`;
    expect((await mesh.fetch(invitation, { key: null })).status).toBe(202);
    expect((await mesh.fetch("/confirm?token=good&utm_source=mail", { key: null })).status).toBe(200);
  });
});

describe("customers", () => {
  test("are invited with the same answer whatever the address, trimmed and lowered", async () => {
    const asked: unknown[] = [];
    mesh.fakes.keys.invite = async (invitation) => {
      asked.push(invitation);
      return {};
    };
    const answer = await mesh.fetch("/newcustomer?email=+Ann%40Example.com%20", { key: null });
    expect(answer.status).toBe(202);
    expect(await answer.json()).toEqual({ status: "invited" });
    expect(asked).toEqual([{ email: "ann@example.com", network: "127.0.0.1" }]);
  });

  test.each([
    "ann+test@example.com",
    "ann%2Btest@example.com",
    "++ann+test%40example.com+",
    "%20ann+test@example.com%20",
  ])("are invited by an address with a plus as it is typed, %s", async (typed) => {
    const asked: string[] = [];
    mesh.fakes.keys.invite = async ({ email }) => {
      asked.push(email);
      return {};
    };
    expect((await mesh.fetch(`/newcustomer?email=${typed}`, { key: null })).status).toBe(202);
    expect(asked).toEqual(["ann+test@example.com"]);
  });

  test("are not invited by an address with a blank within", async () => {
    expect((await mesh.fetch("/newcustomer?email=ann%20test@example.com", { key: null })).status).toBe(400);
  });
});

describe("what is no HTTP request", () => {
  const say = async (words: string) => {
    const { hostname, port } = new URL(mesh.url);
    const socket = connect(Number(port), hostname);
    socket.write(words);
    return text(socket);
  };

  test("is answered with a problem and the end of the connection", async () => {
    const answer = await say("NONSENSE\r\n\r\n");
    expect(answer).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n/);
    expect(answer).toContain('"reason":"request_malformed"');
  });

  test.each([
    ["no host", ""],
    ["two hosts", "Host: x\r\nHost: y\r\n"],
  ])("a request that names %s is answered with a problem", async (_, hosts) => {
    const answer = await say(`GET / HTTP/1.1\r\n${hosts}Connection: close\r\n\r\n`);
    expect(answer).toMatch(/^HTTP\/1\.1 400 Bad Request\r\nX-Request-Id: /);
    expect(answer).toContain('"reason":"request_malformed"');
  });

  test("an expectation that nobody knows is left unmet", async () => {
    const answer = await say(
      `POST ${devices} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer ${secrets.master}\r\nContent-Length: 2\r\nExpect: wonders\r\n\r\n{}`,
    );
    expect(answer).toMatch(/^HTTP\/1\.1 201 /);
  });

  test("a header beyond 16 KB is 431", async () => {
    const answer = await say(`GET / HTTP/1.1\r\nHost: x\r\nX: ${"x".repeat(20_000)}\r\n\r\n`);
    expect(answer).toMatch(/^HTTP\/1\.1 431 /);
    expect(answer).toContain('"reason":"header_too_large"');
  });

  test("a large body that is asked about first is refused before it is sent", async () => {
    const answer = await say(
      `POST ${devices} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer ${secrets.master}\r\nContent-Type: application/json\r\nContent-Length: 9999999\r\nExpect: 100-continue\r\n\r\n`,
    );
    expect(answer).toMatch(/^HTTP\/1\.1 413 /);
  });
});

describe("origins", () => {
  test("are not let in unless they are named", async () => {
    const answer = await mesh.fetch(devices, {
      method: "OPTIONS",
      headers: { origin: "https://app.example.com" },
    });
    expect(answer.status).toBe(405);
    expect(answer.headers.get("access-control-allow-origin")).toBeNull();
  });

  test("that are named may call, others may not", async () => {
    await using open = await startFixture({ env: { CORS_ORIGINS: "https://app.example.com" } });
    const preflight = await open.fetch(`${devices}/pump`, {
      method: "OPTIONS",
      key: null,
      headers: { origin: "https://app.example.com", "access-control-request-method": "DELETE" },
    });
    expect(preflight.status).toBe(204);
    expect(preflight.headers.get("access-control-allow-origin")).toBe("https://app.example.com");
    expect(preflight.headers.get("access-control-allow-methods")).toContain("DELETE");
    const allowed = preflight.headers.get("access-control-allow-headers")?.split(", ");
    expect(allowed).toEqual(expect.arrayContaining(["Authorization", "If-Match", "Last-Event-ID"]));
    const refused = await open.fetch(devices, { headers: { origin: "https://evil.example.com" } });
    expect(refused.headers.get("access-control-allow-origin")).toBeNull();
    expect(refused.headers.get("vary")).toBe("Origin");
    const problem = await open.fetch(devices, { key: null, headers: { origin: "https://app.example.com" } });
    expect(problem.headers.get("access-control-allow-origin")).toBe("https://app.example.com");
  });
});
