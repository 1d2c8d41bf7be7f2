import { createHash } from "node:crypto";
import { request as httpRequest } from "node:http";
import { eventually } from "@devmesh/testkit/eventually";
import type { TestMesh } from "@devmesh/testkit/mesh";
import { beforeAll, describe, expect, test } from "@jest/globals";
import type { RestClient } from "../../src/rest-client.ts";
import { asMaster } from "../../src/tenant.ts";

const pieceBytes = 256 * 1024;

/** Files that devices can run, through the whole mesh. */
export function firmware(shared: () => TestMesh): void {
  describe("firmware", () => {
    let mesh: TestMesh;
    let master: RestClient;
    beforeAll(() => {
      mesh = shared();
      master = asMaster(mesh);
    });

    const content = Buffer.from(
      Uint8Array.from({ length: 3 * pieceBytes + 100 }, (_, at) => (at * 31) % 251),
    );
    let versions = 0;
    async function declare(bytes: Uint8Array = content) {
      const sha256 = createHash("sha256").update(bytes).digest("hex");
      const body = { name: "e2e", version: `1.${++versions}`, size: bytes.length, sha256 };
      const answer = await master.post("firmware", body);
      expect(answer.status).toBe(201);
      expect(answer.headers.get("location")).toBe(`/api/v2/firmware/${answer.json.id}`);
      return answer.json;
    }
    const download = (id: string, headers: Readonly<Record<string, string>> = {}) =>
      fetch(`${mesh.url}/api/v2/firmware/${id}/content`, {
        headers: { authorization: `Bearer ${mesh.masterKey}`, ...headers },
      });
    const bytesOf = async (answer: Response) => Buffer.from(await answer.arrayBuffer());

    test("a file is uploaded, read whole and in every form of range, also over the death of the service", async () => {
      const declared = await declare();
      const { id, sha256 } = declared;
      expect((await master.get(`firmware/${id}/content`)).json.reason).toBe("content_not_found");
      const uploaded = await master.post(`firmware/${id}/content`, content);
      const md5 = createHash("md5").update(content).digest("hex");
      expect([uploaded.status, uploaded.json]).toEqual([200, { ...declared, ready: true, md5 }]);
      const pid = await mesh.pidOf("jobs");
      await mesh.kill("jobs");
      await mesh.restarted("jobs", pid);
      const whole = await eventually(async () => {
        const answer = await download(id);
        return answer.status === 200 ? answer : null;
      });
      expect(whole.headers.get("etag")).toBe(`"${sha256}"`);
      expect([whole.headers.get("x-sha256"), whole.headers.get("x-md5")]).toEqual([sha256, md5]);
      expect((await bytesOf(whole)).equals(content)).toBe(true);
      expect((await download(id, { "if-none-match": `W/"${sha256}"` })).status).toBe(304);
      const end = content.length;
      const parts = [
        ["bytes=0-99", 0, 100],
        [`bytes=${pieceBytes - 5}-${2 * pieceBytes + 5}`, pieceBytes - 5, 2 * pieceBytes + 6],
        [`bytes=${end - 1}-`, end - 1, end],
        ["bytes=-70", end - 70, end],
        [`bytes=5-${end + 1_000}`, 5, end],
      ] as const;
      for (const [range, from, to] of parts) {
        const part = await download(id, { range, "if-range": `"${sha256}"` });
        expect([range, part.status, part.headers.get("content-range")]).toEqual([
          range,
          206,
          `bytes ${from}-${to - 1}/${end}`,
        ]);
        expect((await bytesOf(part)).equals(content.subarray(from, to))).toBe(true);
      }
      for (const headers of [
        { range: "bytes=0-1,5-6" },
        { range: "lines=0-1" },
        { range: "bytes=0-1", "if-range": '"another"' },
      ]) {
        const answer = await download(id, headers);
        expect([answer.status, (await bytesOf(answer)).length]).toEqual([200, end]);
      }
      const after = await download(id, { range: `bytes=${end}-` });
      expect([after.status, after.headers.get("content-range")]).toEqual([416, `bytes */${end}`]);
      await after.body?.cancel();
      const head = await fetch(`${mesh.url}/api/v2/firmware/${id}/content`, {
        method: "HEAD",
        headers: { authorization: `Bearer ${mesh.masterKey}` },
      });
      expect([head.status, head.headers.get("content-length")]).toEqual([200, String(end)]);
      expect((await master.delete(`firmware/${id}`)).status).toBe(204);
      expect((await master.get(`firmware/${id}/content`)).status).toBe(404);
      expect((await master.delete(`firmware/${id}`)).json.reason).toBe("firmware_not_found");
    });

    test("a wrong content is refused, and the right one is taken afterwards, once", async () => {
      const { id } = await declare();
      const wrong = Buffer.from(content);
      wrong[pieceBytes] = (wrong[pieceBytes] ?? 0) ^ 1;
      const refused = await master.post(`firmware/${id}/content`, wrong);
      expect([refused.status, refused.json.reason]).toEqual([400, "content_mismatch"]);
      expect((await master.get(`firmware/${id}`)).json.ready).toBe(false);
      const [one, other] = await Promise.all(
        [1, 2].map(() => master.post(`firmware/${id}/content`, content)),
      );
      expect([one?.status, other?.status].toSorted()).toEqual([200, 409]);
      const again = await master.post(`firmware/${id}/content`, content);
      expect([again.status, again.json.reason]).toEqual([409, "content_exists"]);
      expect((await bytesOf(await download(id))).equals(content)).toBe(true);
    });

    test("an upload that is cut leaves nothing, and is repeated", async () => {
      const { id } = await declare();
      const request = httpRequest(`${mesh.url}/api/v2/firmware/${id}/content`, {
        method: "POST",
        headers: {
          authorization: `Bearer ${mesh.masterKey}`,
          "content-type": "application/octet-stream",
          "content-length": content.length,
        },
      }).on("error", () => undefined);
      request.write(content.subarray(0, 2 * pieceBytes), () => request.destroy());
      await new Promise((resolve) => request.on("close", resolve));
      expect((await master.get(`firmware/${id}`)).json.ready).toBe(false);
      expect((await master.post(`firmware/${id}/content`, content)).json).toMatchObject({ id, ready: true });
    });

    test("what is wrong with a declaration is named by its place", async () => {
      const { json } = await master.post("firmware", {
        name: "",
        version: "1",
        size: 0,
        sha256: "ABC",
        requires: { label: [] },
      });
      expect(json.reason).toBe("invalid_request");
      expect(json.errors.map(({ pointer }: { pointer: string }) => pointer).toSorted()).toEqual(
        ["/name", "/requires/label", "/sha256", "/size"].toSorted(),
      );
      const large = { name: "e2e", version: "large", size: 1024 ** 3, sha256: "0".repeat(64) };
      const refused = await master.post("firmware", large);
      expect([refused.status, refused.json.reason, refused.json.errors[0].pointer]).toEqual([
        413,
        "firmware_too_large",
        "/size",
      ]);
    });
  });
}
