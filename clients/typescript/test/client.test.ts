import { createHash } from "node:crypto";
import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { eventually } from "@devmesh/testkit/eventually";
import { startMesh, type TestMesh } from "@devmesh/testkit/mesh";
import { connectMqttDevice, type MqttDevice } from "@devmesh/testkit/mqtt-device";
import { startProcess } from "@devmesh/testkit/process";
import { tempFolder } from "@devmesh/testkit/temp-folder";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import {
  createDevmeshClient,
  type DevmeshClient,
  type DevmeshNotification,
  DevmeshProblem,
  DevmeshUnreachable,
} from "../src/client.ts";
import { firmwareRelease } from "./firmware-release.suite.ts";

let mesh: TestMesh;
let devmesh: DevmeshClient;
let pump: MqttDevice;

beforeAll(async () => {
  mesh = await startMesh();
  devmesh = createDevmeshClient({ url: `${mesh.url}/`, key: mesh.masterKey });
  const { data } = await devmesh.POST("/api/v2/devices", { body: { id: "pump-1" } });
  pump = await connectMqttDevice({ url: mesh.mqttUrl, id: "pump-1", token: data.token });
  await pump.answerRpc(({ params }) => ({ result: params }));
}, 120_000);
afterAll(async () => {
  await pump?.leave();
  await mesh?.stop();
});

const listen = async (server: Server): Promise<string> => {
  await once(server.listen(0, "127.0.0.1"), "listening");
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
};

const refusalOf = async (work: Promise<unknown>) => {
  const error = await work.then(
    () => undefined,
    (cause: unknown) => cause,
  );
  if (!(error instanceof DevmeshProblem)) throw new Error("it was not refused");
  return error;
};

firmwareRelease(() => mesh);

describe("firmware", () => {
  const content = Buffer.from(Uint8Array.from({ length: 600_000 }, (_, at) => (at * 3) % 253));
  const declare = async (version: string) => {
    const sha256 = createHash("sha256").update(content).digest("hex");
    const body = { name: "ts", version, size: content.length, sha256 };
    return (await devmesh.POST("/api/v2/firmware", { body })).data.id;
  };

  test("is sent from a stream, from bytes and from a blob, and read whole or in part", async () => {
    const bodies = [new Blob([content]).stream(), new Uint8Array(content), new Blob([content])];
    for (const [at, body] of bodies.entries()) {
      const id = await declare(`1.${at}`);
      expect(await devmesh.uploadFirmware(id, body)).toMatchObject({ id, ready: true });
      const whole = await devmesh.downloadFirmware(id);
      expect(Buffer.from(await whole.arrayBuffer()).equals(content)).toBe(true);
      const part = await devmesh.downloadFirmware(id, { range: "bytes=10-19" });
      expect([part.status, [...new Uint8Array(await part.arrayBuffer())]]).toEqual([
        206,
        [...content.subarray(10, 20)],
      ]);
    }
  });

  test("that is not what was declared is refused with the reason", async () => {
    const id = await declare("2");
    const refused = await refusalOf(devmesh.uploadFirmware(id, new Uint8Array(content.length)));
    expect(refused.reason).toBe("content_mismatch");
  });
});

describe("requests", () => {
  test("are typed by path, and answer what the API answers", async () => {
    const path = { id: "pump-1" };
    const body = { shadow: { state: { desired: { on: true } } } };
    const { data } = await devmesh.POST("/api/v2/devices/{id}", { params: { path }, body });
    expect([data.shadow.version, data.shadow.state.desired]).toEqual([1, { on: true }]);
    const call = await devmesh.POST("/api/v2/devices/{id}/rpc/{func}", {
      params: { path: { ...path, func: "echo" }, query: { timeout: 5_000 } },
      body: { a: [1] },
    });
    expect(call.data).toEqual({ a: [1] });
  });

  test("of one device are methods of it, of routes that are added, too", async () => {
    const device = devmesh.device("pump-1");
    expect(await device.call("sum", [2, 3])).toEqual([2, 3]);
    expect((await device.patchDevice({ body: { name: "Pump" } })).name).toBe("Pump");
    expect((await device.readDevice()).shadow.state.desired).toEqual({ on: true });
    expect((await device.readCredentials()).token).toMatch(/^dt_/);
    await pump.publish("db/pump-1/flow", "12", 1);
    await eventually(async () => (await device.readLatest({ query: { limit: 5 } })).length === 1);
    for await (const record of device.records({ filter: "/flow" })) expect(record.message).toBe("12");
    await devmesh.POST("/api/v2/devices", { body: { id: "brief-1" } });
    expect(await devmesh.device("brief-1").deleteDevice()).toBeUndefined();
  });

  test("name the server that refuses the connection, and are ended by their signal", async () => {
    const closed = createServer();
    const url = await listen(closed);
    closed.close();
    const away = createDevmeshClient({ url, key: "mk_secret" });
    for (const request of [() => away.device("x").readDevice(), () => away.devices().next()]) {
      const error = await request().then(
        () => null,
        (cause: unknown) => cause,
      );
      expect(error).toBeInstanceOf(DevmeshUnreachable);
      expect(error).toMatchObject({ url, code: "ECONNREFUSED" });
      expect(String(error)).toBe(`DevmeshUnreachable: ${url} refused the connection (ECONNREFUSED)`);
    }
    const call = devmesh.device("pump-1").call("sum", [], { signal: AbortSignal.abort() });
    await expect(call).rejects.toMatchObject({ name: "AbortError" });
  });

  test("that are refused throw the problem", async () => {
    const params = { path: { id: "nobody" } };
    const error = await refusalOf(devmesh.GET("/api/v2/devices/{id}", { params }));
    expect([error.status, error.reason, error.message]).toEqual([
      404,
      "device_not_found",
      error.problem?.detail,
    ]);
  });
});

describe("a key", () => {
  const requests = (client: DevmeshClient): readonly (() => Promise<unknown>)[] => [
    () => client.GET("/api/v2/devices"),
    () => client.devices().next(),
    () => client.notifications().next(),
  ];

  test("goes to no address that a redirect names", async () => {
    let received = 0;
    const other = createServer((_request, response) => {
      received++;
      response.end("[]");
    });
    const otherUrl = await listen(other);
    const redirecting = createServer((_request, response) => {
      response.writeHead(302, { Location: otherUrl }).end();
    });
    const client = createDevmeshClient({ url: await listen(redirecting), key: "mk_secret" });
    try {
      for (const request of requests(client)) {
        const error = await refusalOf(request());
        expect([error.status, error.message]).toEqual([302, expect.stringContaining("redirect")]);
      }
      expect(received).toBe(0);
    } finally {
      for (const server of [other, redirecting]) server.close();
    }
  });

  test.each(["mk_sec\nret", "mk_secret€", "mk secret", ""])(
    "that is malformed is refused unquoted: %j",
    (key) => {
      expect(() => createDevmeshClient({ url: mesh.url, key })).toThrow(
        new TypeError("the key is empty or has a character that no key has"),
      );
    },
  );
});

test("lists are read page after page", async () => {
  for (let number = 0; number < 5; number++)
    await devmesh.POST("/api/v2/devices", { body: { id: `shelf-${number}` } });
  const found: string[] = [];
  for await (const { id } of devmesh.devices({ limit: 2, filter: "shelf-" })) found.push(id);
  expect(found).toEqual([0, 1, 2, 3, 4].map((number) => `shelf-${number}`));

  for (let number = 0; number < 7; number++) await pump.publish("db/pump-1/numbers", String(number), 1);
  await eventually(async () => (await mesh.http("/api/v2/data?filter=/numbers")).json.length === 7);
  const texts: string[] = [];
  for await (const record of devmesh.records({ filter: "/numbers", limit: 3 })) texts.push(record.message);
  expect(texts.join()).toBe("0,1,2,3,4,5,6");
});

describe("jobs", () => {
  const ids = ["one", "two", "three"];
  const target = { ids };
  beforeAll(async () => {
    for (const id of ids) await devmesh.POST("/api/v2/devices", { body: { id } });
  });

  test("are created, waited for and listed by device, page after page", async () => {
    const action = { kind: "shadow", patch: { tags: { labels: ["shelf"] } } } as const;
    expect(await devmesh.jobs.try({ target, action })).toMatchObject({ devices: 3, not_found: 0 });
    const { id } = await devmesh.jobs.create({ target, action });
    const read: string[] = [];
    const done = await devmesh.jobs.wait(id, { onProgress: ({ state }) => read.push(state) });
    expect([done.state, done.counts.succeeded, read.at(-1)]).toEqual(["done", 3, "done"]);
    const labelled: string[] = [];
    for await (const { device_id } of devmesh.jobs.executions(id, { limit: 2, state: "succeeded" }))
      labelled.push(device_id);
    expect(labelled.sort()).toEqual(ids.toSorted());
  });

  test("that wait for sleeping devices are waited for until the signal, or until they are paused", async () => {
    const { id } = await devmesh.jobs.create({ target, action: { kind: "rpc", func: "sum" } });
    const ending = new AbortController();
    const waiting = devmesh.jobs.wait(id, { signal: ending.signal, onProgress: () => ending.abort() });
    await expect(waiting).rejects.toMatchObject({ name: "AbortError" });
    await devmesh.POST("/api/v2/jobs/{id}", { params: { path: { id } }, body: { state: "paused" } });
    expect(await devmesh.jobs.wait(id, { orPaused: true })).toMatchObject({
      state: "paused",
      why: "by_request",
    });
  });

  test("are waited for while the server is away, and not if there is none of the id", async () => {
    let failures = 3;
    const failing: typeof fetch = async (input, init) => {
      if (failures-- <= 0) return await fetch(input, init);
      if (failures % 2 === 0) return new Response("bad gateway", { status: 502 });
      throw new TypeError("fetch failed");
    };
    const action = { kind: "shadow", patch: { tags: { labels: ["shelf"] } } } as const;
    const { id } = await devmesh.jobs.create({ target, action });
    const client = createDevmeshClient({ url: mesh.url, key: mesh.masterKey, fetch: failing });
    expect(await client.jobs.wait(id)).toMatchObject({ id, state: "done" });
    expect((await refusalOf(devmesh.jobs.wait("none"))).reason).toBe("job_not_found");
  });
});

describe("alerts", () => {
  test("of a rule are followed, listed page after page, acknowledged and silenced", async () => {
    const channel = await devmesh.POST("/api/v2/channels", {
      body: { kind: "mail", name: "On call", to: ["ann@example.com"] },
    });
    const when = { kind: "value", topic: "level", is: ">", than: 90 } as const;
    const { data: tried } = await devmesh.POST("/api/v2/rules/try", { body: { name: "Full", when } });
    expect(tried.firings).toEqual([]);
    const { data: rule } = await devmesh.POST("/api/v2/rules", {
      body: { name: "Full", severity: "critical", when, notify: [channel.data.id] },
    });
    // A first rule is evaluated from within a second on.
    await eventually(async () => {
      await pump.publish("db/pump-1/level", "95", 1);
      return (await devmesh.GET("/api/v2/alerts/summary")).data.firing > 0;
    });
    for await (const frame of devmesh.notifications({ after: 0 })) {
      if (frame.name !== "alert") continue;
      expect([frame.id, frame.data.rule_id, frame.data.value]).toEqual(["pump-1", rule.id, 95]);
      break;
    }
    const firing: { readonly id: string }[] = [];
    for await (const alert of devmesh.alerts({ state: "firing", rule_id: rule.id, limit: 1 }))
      firing.push(alert);
    const [{ id } = { id: "" }, ...others] = firing;
    expect(others).toEqual([]);
    const { data: acknowledged } = await devmesh.POST("/api/v2/alerts/{id}", {
      params: { path: { id } },
      body: { acknowledged: true, note: "Somebody is on the way" },
    });
    expect(acknowledged.acknowledged_at).not.toBeNull();
    const { data: summary } = await devmesh.GET("/api/v2/alerts/summary");
    expect([summary.firing, summary.unacknowledged]).toEqual([1, 0]);
    const until = new Date(Date.now() + 3_600_000).toISOString();
    const { data: silence } = await devmesh.POST("/api/v2/silences", {
      body: { rule_ids: [rule.id], until },
    });
    expect((await devmesh.GET("/api/v2/silences")).data.map((one) => one.id)).toEqual([silence.id]);
    await devmesh.DELETE("/api/v2/rules/{id}", { params: { path: { id: rule.id } } });
    await eventually(async () => {
      const { value: alert } = await devmesh.alerts({ rule_id: rule.id }).next();
      return alert?.cleared_why === "rule_deleted";
    });
  });

  test("reach a webhook, which is created, tested and replaced its secret, and whose frame says so", async () => {
    const url = "http://127.0.0.1:1/";
    const { data: webhook } = await devmesh.POST("/api/v2/webhooks", { body: { url, events: ["alert"] } });
    expect(webhook.secret).toMatch(/^whsec_/);
    const params = { path: { id: webhook.id } };
    const { data: outcome } = await devmesh.POST("/api/v2/webhooks/{id}/test", { params });
    expect(outcome).toMatchObject({ status: null, error: "ECONNREFUSED" });
    const { data: replaced } = await devmesh.POST("/api/v2/webhooks/{id}/secret", { params });
    expect(replaced.secret).not.toBe(webhook.secret);
    expect((await devmesh.GET("/api/v2/webhooks/{id}/dead", { params })).data).toEqual([]);
    const changes: string[] = [];
    for await (const frame of devmesh.notifications({ after: 0, account: true })) {
      if (frame.name === "webhooks" && frame.id === webhook.id) changes.push(frame.data.change);
      if (changes.length === 2) break;
    }
    expect(changes).toEqual(["created", "updated"]);
    await devmesh.DELETE("/api/v2/webhooks/{id}", { params });
  });
});

describe("the notification stream", () => {
  test("gives frames typed by name, over a connection that breaks, and ends with its signal", async () => {
    const ending = new AbortController();
    // Each connection ends after its first frames.
    let connections = 0;
    const breaking: typeof fetch = async (input, init) => {
      connections++;
      const response = await fetch(input, init);
      const reader = response.body?.getReader();
      const body = new ReadableStream({
        async pull(controller) {
          const read = await reader?.read();
          if (read?.value !== undefined) controller.enqueue(read.value);
          if (String(Buffer.from(read?.value ?? "")).includes("data:")) controller.close();
        },
        cancel: async () => reader?.cancel(),
      });
      return new Response(body, response);
    };
    const client = createDevmeshClient({ url: mesh.url, key: mesh.masterKey, fetch: breaking });
    const { signal } = ending;
    const frames: DevmeshNotification[] = [];
    const following = (async () => {
      for await (const frame of client.notifications({ device: "bell-1", signal })) {
        frames.push(frame);
        if (frame.name === "updated" && frame.data.name === "third") ending.abort();
      }
    })();
    await eventually(() => connections === 1);
    await devmesh.POST("/api/v2/devices", { body: { id: "bell-1" } });
    for (const name of ["first", "second", "third"]) {
      const params = { path: { id: "bell-1" } };
      await devmesh.POST("/api/v2/devices/{id}", { params, body: { name } });
      await eventually(() => frames.some((frame) => frame.name === "updated" && frame.data.name === name));
    }
    await following;
    expect(frames.map(({ name }) => name)).toEqual(["created", "updated", "updated", "updated"]);
    expect(connections).toBeGreaterThan(1);
  });

  test("throws what refuses it", async () => {
    const { data } = await devmesh.POST("/api/v2/keys", { body: { device_id: "pump-1" } });
    const client = createDevmeshClient({ url: mesh.url, key: data.key ?? "" });
    const error = await refusalOf(client.notifications().next());
    expect([error.status, error.reason]).toEqual([403, "wrong_key_kind"]);
  });
});

/** Starts the first example of a page in a language, for this mesh. */
async function startExample(page: string, language: "ts" | "js") {
  const [, example = ""] =
    new RegExp(`\`\`\`${language}\n([\\s\\S]*?)\`\`\``).exec(
      await readFile(new URL(page, import.meta.url), "utf8"),
    ) ?? [];
  const folder = await tempFolder();
  const file = join(folder.path, `example.${language === "js" ? "mjs" : "ts"}`);
  const client = new URL("../src/client.ts", import.meta.url).href;
  const text = example
    .replace('"@devmesh/client"', JSON.stringify(client))
    .replace("http://127.0.0.1:8080", mesh.url);
  await writeFile(file, text);
  const program = startProcess(process.execPath, ["--disable-warning=ExperimentalWarning", file], {
    env: { ...process.env, DEVMESH_KEY: mesh.masterKey },
  });
  return {
    output: () => program.output(),
    async [Symbol.asyncDispose]() {
      await program[Symbol.asyncDispose]();
      await folder.remove();
    },
  };
}

test("the example for charts has the points of a series as rows, and as columns", async () => {
  await pump.publish("db/pump-1/temp", '{"celsius":21.5}', 1);
  await eventually(async () => {
    const path = "/api/v2/series?device_id=pump-1&topic=temp&pointer=/celsius";
    return (await mesh.http(path)).json.series[0]?.points.length === 1;
  });
  await using program = await startExample("../../../docs/operations/grafana.md", "js");
  await eventually(() => /^\[\[\d+\],\[21\.5\],\[21\.5\],\[21\.5\]\]$/m.test(program.output()));
  expect(program.output()).toContain('[["time","avg","min","max"],["');
});

test("the example of the README runs as it is", async () => {
  await using program = await startExample("../README.md", "ts");
  await eventually(async () => {
    await pump.publish("db/pump-1/temperature", "21.5", 1);
    return program.output().includes("db/pump-1/temperature 21.5");
  });
  expect(program.output()).toContain("[ 2, 3 ]\n");
});
