import { eventually } from "@devmesh/testkit/eventually";
import type { TestMesh } from "@devmesh/testkit/mesh";
import { beforeAll, describe, expect, test } from "@jest/globals";
import type { RestClient } from "../../src/rest-client.ts";
import { asMaster, enrolDevice } from "../../src/tenant.ts";

/** Records of devices, over REST. The mesh holds none before. */
export function storedData(shared: () => TestMesh): void {
  describe("stored data", () => {
    let mesh: TestMesh;
    let master: RestClient;
    let asAb: RestClient;

    interface StoredRecord {
      id: number;
      device_id: string;
      topic: string;
      message: string;
      encoding?: string;
    }

    const records = async (query: string, client = master): Promise<StoredRecord[]> => {
      const { status, json, text } = await client.get(`data?${query}`);
      if (status !== 200) throw new Error(`${query}: ${status} ${text.slice(0, 200)}`);
      return json;
    };
    const texts = async (query: string) => (await records(query)).map(({ message }) => message);
    const quote = encodeURIComponent;

    const odd = [
      "100 %",
      "under_score",
      `it's "quoted"`,
      "Grüße",
      "日本語",
      "🌡️ hot",
      "a*b",
      "x",
      "xy",
      "NEAR AND OR",
      "back\\slash",
      "nul\0byte",
    ];

    beforeAll(async () => {
      mesh = shared();
      master = asMaster(mesh);
      expect(await records("")).toEqual([]);
      expect(await records("skip=-5")).toEqual([]);
      const ab = await enrolDevice(mesh, "ab");
      const abc = await enrolDevice(mesh, "abc");
      asAb = ab.asDeviceKey;
      const [one, other] = [await ab.connect(), await abc.connect()];
      for (let at = 0; at < 6_000; at += 500) {
        await Promise.all(
          Array.from({ length: 500 }, (_, more) => {
            const label = `#${at + more} `;
            return one.publish("db/ab/bulk", label.padEnd(1024, "."), 1);
          }),
        );
      }
      for (const text of odd) await one.publish("db/ab/odd", text, 1);
      await one.publish("db/ab/raw", Buffer.from([0xff, 0xfe, 0x00, 0x01]), 1);
      await one.publish("db/ab/dotted.level/x", "dotted", 1);
      await other.publish("db/abc/only", "of abc", 1);
      await one.publish("db/ab/qos0", "at most once", 0);
      await one.publish("db/ab/qos2", "exactly once", 2);
      await eventually(async () => (await records("skip=-1&filter=exactly")).length === 1);
      await eventually(async () => (await records("filter=at%20most%20once")).length === 1);
      await Promise.all([one.leave(), other.leave()]);
    }, 120_000);

    test("following `Link` finds each record once, from wherever it begins", async () => {
      const all = (await records("limit=5000")).map(({ id }) => id);
      all.push(...(await records(`limit=5000&after=${all.at(-1)}`)).map(({ id }) => id));
      expect(all.length).toBeGreaterThan(6_000);
      const follow = async (query: string) => {
        const found: number[] = [];
        let next: string | undefined = `/api/v2/data?${query}`;
        while (next !== undefined) {
          const { status, json, headers } = await master.get(next);
          expect(status).toBe(200);
          found.push(...json.map(({ id }: StoredRecord) => id));
          next = /<(.*)>; rel="next"/.exec(headers.get("link") ?? "")?.[1];
        }
        return found;
      };
      expect(await follow("limit=2500")).toEqual(all);
      expect(await follow("limit=1000&skip=3500")).toEqual(all.slice(3500));
      expect(await follow("limit=900&skip=-2000")).toEqual(all.slice(-2000));
      expect(await follow(`limit=1000&after=${all[3999]}`)).toEqual(all.slice(4000));
      expect(await follow("filter=%2311")).toHaveLength((await records("filter=%2311&limit=5000")).length);
    });

    describe("skip and limit", () => {
      test("the default is the first 100, oldest first", async () => {
        const first = await records("");
        expect(first.length).toBe(100);
        expect(first.map(({ id }) => id)).toEqual(first.map(({ id }) => id).sort((a, b) => a - b));
      });
      test("limit 0 answers nothing, 5,000 records of 1 KB come whole, 5,001 is refused", async () => {
        expect(await records("limit=0")).toEqual([]);
        const many = await records("limit=5000");
        expect(many.length).toBe(5000);
        expect(new Set(many.map(({ id }) => id)).size).toBe(5000);
        expect((await master.get("data?limit=5001")).status).toBe(400);
        expect((await master.get("data?limit=-1")).status).toBe(400);
      });
      test("a positive skip starts after so many, and past the end is nothing", async () => {
        const all = await records("limit=20");
        expect(await records("skip=15&limit=5")).toEqual(all.slice(15));
        expect(await records("skip=999999")).toEqual([]);
        expect((await master.get("data?skip=1000001")).status).toBe(400);
      });
      test("a negative skip starts so many before the end; beyond the first record it starts at the first", async () => {
        const last = await records("skip=-10");
        expect(last.length).toBe(10);
        expect(await records("skip=-10&limit=3")).toEqual(last.slice(0, 3));
        expect(await records("skip=-3")).toEqual(last.slice(-3));
        expect(await records("skip=-900000&limit=5")).toEqual(await records("limit=5"));
        expect(await records("skip=-4&limit=5000&filter=%23599")).toHaveLength(4);
        expect((await master.get("data?skip=-1000001")).status).toBe(400);
      });
      test.each(["skip=x", "limit=1.5", "limit=", "skip=1&skip=2", "since=yesterday"])(
        "%s is refused",
        async (query) => {
          const { status, json } = await master.get(`data?${query}`);
          expect([status, json.errors?.length]).toEqual([400, 1]);
        },
      );
      test("after walks all records once each", async () => {
        const ids: number[] = [];
        for (let after = ""; ; ) {
          const page = await records(`limit=1000${after}`);
          ids.push(...page.map(({ id }) => id));
          if (page.length < 1000) break;
          after = `&after=${page.at(-1)?.id}`;
        }
        expect(ids.length).toBe(6_000 + odd.length + 5);
        expect(new Set(ids).size).toBe(ids.length);
      });
    });

    describe("filter", () => {
      test.each(odd.filter((text) => !text.includes("\0")))("finds %p in the payload", async (text) => {
        expect(await texts(`skip=-500&limit=500&filter=${quote(text)}`)).toContain(text);
      });
      test.each([
        ["%", ["100 %"]],
        ["_", ["under_score"]],
        ["'", [`it's "quoted"`]],
        ['"', [`it's "quoted"`]],
        ["\\", ["back\\slash"]],
        ["*", ["a*b"]],
        ["ü", ["Grüße"]],
      ])("takes %p literally", async (filter, found) => {
        const { json } = await master.get(`data?limit=5000&filter=${quote(filter)}`);
        const matching = json.filter(({ topic }: StoredRecord) => topic === "db/ab/odd");
        expect(matching.map(({ message }: StoredRecord) => message)).toEqual(found);
        expect(json.length).toBe(found.length);
      });
      test("matches the topic too, and is case-sensitive", async () => {
        expect(await texts("filter=dotted.level")).toEqual(["dotted"]);
        expect(await texts("filter=DOTTED")).toEqual([]);
      });
      test("empty means none", async () => {
        expect(await records("filter=&limit=7")).toEqual(await records("limit=7"));
      });
      test("a NUL in it is refused", async () => {
        expect((await master.get("data?filter=a%00b")).status).toBe(400);
      });
      test("a payload that is not UTF-8 is base64 and found by its topic alone", async () => {
        const [record] = await records("filter=db/ab/raw");
        expect(record).toMatchObject({ encoding: "base64", message: "//4AAQ==" });
        expect(await records("filter=%2F%2F4AAQ")).toEqual([]);
      });
      test("a payload with a NUL is stored as it is", async () => {
        expect(await texts("filter=nul")).toContain("nul\0byte");
      });
    });

    describe("whose records", () => {
      test("the key of device ab does not see db/abc/, whatever it asks", async () => {
        expect((await records("limit=5000&filter=abc", asAb)).length).toBe(0);
        expect((await records("skip=-1", asAb))[0]?.device_id).toBe("ab");
        expect((await asAb.get("data?device_id=abc")).status).toBe(403);
        expect((await records("device_id=abc")).map(({ message }) => message)).toEqual(["of abc"]);
      });
    });

    describe("of one topic, and the newest of each", () => {
      test("a topic selects the records below a device", async () => {
        expect(await texts("device_id=ab&topic=qos0")).toEqual(["at most once"]);
        expect(
          (await records("device_id=ab&topic=bulk&skip=-3")).map(({ message }) => message.trim()),
        ).toEqual([5_997, 5_998, 5_999].map((at) => expect.stringMatching(`^#${at} `)));
        expect(await records("topic=only", asAb)).toEqual([]);
        expect((await records("topic=dotted.level/%2B", asAb)).map(({ message }) => message)).toEqual([
          "dotted",
        ]);
        const unbound = await master.get("data?topic=only");
        expect([unbound.status, unbound.json.reason]).toEqual([400, "topic_unbound"]);
      });
      test("the newest record of each topic is that of `skip=-1`", async () => {
        const topics = ["bulk", "dotted.level/x", "odd", "qos0", "qos2", "raw"];
        const newest: StoredRecord[] = [];
        for (const topic of topics)
          newest.push(...(await records(`device_id=ab&topic=${quote(topic)}&skip=-1`)));
        const answer = await master.get("devices/ab/latest");
        expect(answer.json).toEqual(newest);
        expect(answer.headers.get("total-count")).toBe("6");
        expect((await asAb.get("device/latest")).json).toEqual(newest);
        expect((await asAb.get("device?latest=true")).json.latest).toEqual(newest);
        const page = await master.get("devices/ab/latest?limit=2");
        expect(page.json).toEqual(newest.slice(0, 2));
        const next = /<\/api\/v2\/(.*)>; rel="next"/.exec(page.headers.get("link") ?? "")?.[1] ?? "";
        expect((await master.get(next)).json).toEqual(newest.slice(2, 4));
        expect((await master.get("devices/nobody/latest")).status).toBe(404);
      });
    });

    describe("export", () => {
      test("NDJSON streams all that match, beyond 5,000", async () => {
        const answer = await master.get("data", { headers: { accept: "application/x-ndjson" } });
        expect(answer.headers.get("content-type")).toContain("application/x-ndjson");
        const lines = answer.text.trimEnd().split("\n");
        expect(lines.length).toBe(6_000 + odd.length + 5);
        expect(JSON.parse(lines[0] ?? "")).toEqual((await records("limit=1"))[0]);
      });
      test("CSV has a header line and quotes after RFC 4180", async () => {
        const { text, headers } = await master.get("data?filter=quoted", { headers: { accept: "text/csv" } });
        expect(headers.get("content-type")).toContain("text/csv");
        const [header, line] = text.split(/\r?\n/);
        expect(header).toMatch(/^id,timestamp,device_id,topic,message/);
        expect(line).toContain(`"it's ""quoted"""`);
      });
    });
  });
}
