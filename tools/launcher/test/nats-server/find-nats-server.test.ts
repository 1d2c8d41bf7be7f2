import { existsSync } from "node:fs";
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { commandLineOf } from "@devmesh/supervisor/process/command-line";
import { eventually } from "@devmesh/testkit/eventually";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { cachedBinary } from "../../src/nats-server/binary-cache.ts";
import { findNatsServer, type NatsServerSearchOptions } from "../../src/nats-server/find-nats-server.ts";
import { releaseArchive } from "../../src/nats-server/release-download.ts";
import { PINNED_VERSION } from "../../src/nats-server/supported-version.ts";
import { checksumLine, fakeServer, releaseServer, tarGz } from "./release-server.ts";

const NOWHERE = "http://127.0.0.1:9/";
const timeouts = { answerMs: 2_000, stallMs: 2_000 };
const linux = { platform: "linux", architecture: "x64" };

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "devmesh-find-"));
});
afterEach(async () => {
  await rm(folder, { recursive: true, force: true });
});

/** An executable file below the test's folder. */
async function script(path: string, content: string): Promise<string> {
  const file = join(folder, path);
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, content);
  await chmod(file, 0o755);
  return file;
}

function lookUp(env: NodeJS.ProcessEnv, more: Partial<NatsServerSearchOptions> = {}) {
  const logged: string[] = [];
  const complete: NodeJS.ProcessEnv = {
    PATH: join(folder, "empty"),
    XDG_CACHE_HOME: join(folder, "cache"),
    NATS_SERVER_DOWNLOAD_URL: NOWHERE,
    ...env,
  };
  const found = findNatsServer({
    env: complete,
    log: (sentence) => logged.push(sentence),
    timeouts,
    ...linux,
    ...more,
  });
  return { found, logged, cached: cachedBinary(complete) };
}

function release(version = PINNED_VERSION) {
  const archive = releaseArchive("linux", "x64");
  if (!archive) throw new Error("there is a release for linux");
  return { archive, content: tarGz(archive.member, fakeServer(version)) };
}

describe("nats-server is looked up", () => {
  test("first in NATS_SERVER_BIN, before PATH", async () => {
    const binary = await script("mine/server", fakeServer());
    await script("bin/nats-server", fakeServer());
    const { found } = lookUp({ NATS_SERVER_BIN: binary, PATH: join(folder, "bin") });
    expect(await found).toEqual({ path: binary, from: "NATS_SERVER_BIN" });
  });

  test.each([
    ["does not exist", null, /there is no such file/],
    ["is not nats-server", "#!/bin/sh\necho hello\n", /cannot be run as nats-server/],
    ["is too old", fakeServer("2.10.29"), /version 2\.10\.29/],
  ])("and a NATS_SERVER_BIN that %s is refused, not passed over", async (_how, content, reason) => {
    const binary = content === null ? join(folder, "missing") : await script("mine/server", content);
    await expect(lookUp({ NATS_SERVER_BIN: binary }).found).rejects.toThrow(reason);
  });

  test("then on PATH, where an unfit one is passed over and the reason logged", async () => {
    await script("old/nats-server", fakeServer("2.15.1"));
    await script("other/nats-server", fakeServer("2.16.0"));
    const fit = await script("fit/nats-server", fakeServer("2.15.7"));
    const path = ["old", "other", "fit"].map((name) => join(folder, name)).join(delimiter);
    const { found, logged } = lookUp({ PATH: path });
    expect(await found).toEqual({ path: fit, from: "PATH" });
    expect(logged).toEqual([
      expect.stringMatching(/old\/nats-server is not used: it is version 2\.15\.1, older than 2\.15\.2/),
      expect.stringMatching(/other\/nats-server is not used: it is version 2\.16\.0, .* 2\.15\.x/),
    ]);
  });

  test("then in the cache", async () => {
    const cached = await script(`cache/devmesh/nats-server-v${PINNED_VERSION}`, fakeServer());
    expect(await lookUp({}).found).toEqual({ path: cached, from: "cache" });
  });

  test("then among the releases, checked and kept in the cache", async () => {
    const { archive, content } = release();
    await using host = await releaseServer({
      SHA256SUMS: `${"0".repeat(64)}  another.tar.gz\n${checksumLine(archive.name, content)}`,
      [archive.name]: content,
    });
    const env = { NATS_SERVER_DOWNLOAD_URL: host.url };
    const { found, cached, logged } = lookUp(env);
    expect(await found).toEqual({ path: cached, from: "download" });
    expect(await readFile(cached, "utf8")).toBe(fakeServer());
    expect(logged).toEqual([expect.stringContaining(`Downloading nats-server ${PINNED_VERSION}`)]);
    expect(await lookUp(env).found).toMatchObject({ from: "cache" });
    expect(host.requests).toEqual(["SHA256SUMS", archive.name]);
  });

  test("last by go install of the pinned version", async () => {
    const made = await script("built", fakeServer());
    const go = await script(
      "go/go",
      `#!/bin/sh\n[ "$1" = install ] || exit 9\necho "$2" >&2\n/bin/cp "${made}" "$GOBIN/nats-server"\n`,
    );
    const { found, cached, logged } = lookUp({ PATH: dirname(go) });
    expect(await found).toEqual({ path: cached, from: "go install" });
    expect(logged.join("\n")).toContain(`Building nats-server ${PINNED_VERSION} with ${go}`);
  });

  test("and when nothing helps, one sentence names each reason and the way out", async () => {
    const go = await script("go/go", "#!/bin/sh\necho 'no network' >&2\nexit 1\n");
    const failure = await lookUp({ PATH: dirname(go) }).found.catch((error: Error) => error.message);
    expect(failure).toMatch(/could not be downloaded: .*; go install failed: no network.*NATS_SERVER_BIN/);
    await expect(lookUp({}, { architecture: "mips" }).found).rejects.toThrow(
      /no release is published for linux on mips; Go is not installed/,
    );
  });
});

describe("a look-up that is given up leaves nothing running and nothing half-written", () => {
  test("while it downloads", async () => {
    const { archive, content } = release();
    const giveUp = new AbortController();
    await using host = await releaseServer({
      SHA256SUMS: checksumLine(archive.name, content),
      [archive.name]: (response: import("node:http").ServerResponse) => {
        response.writeHead(200);
        response.write(content.subarray(0, 10), () => giveUp.abort(new Error("Ctrl-C")));
      },
    });
    const more = { signal: giveUp.signal, timeouts: { answerMs: 60_000, stallMs: 60_000 } };
    const { found, cached, logged } = lookUp({ NATS_SERVER_DOWNLOAD_URL: host.url }, more);
    await expect(found).rejects.toThrow("Ctrl-C");
    expect(logged).toHaveLength(1);
    expect(await readdir(dirname(cached))).toEqual([]);
  });

  test("while it builds", async () => {
    const pidFile = join(folder, "compiler.pid");
    const halfBuilt = join(folder, "half-built");
    const go = await script(
      "go/go",
      `#!/bin/sh\necho "$GOTMPDIR" >${halfBuilt}\n/bin/sleep 60 &\necho $! >${pidFile}\nwait\n`,
    );
    const compilerPid = async () => Number(await readFile(pidFile, "utf8").catch(() => ""));
    const giveUp = new AbortController();
    const { found, cached } = lookUp({ PATH: dirname(go) }, { signal: giveUp.signal });
    found.catch(() => {});
    // The shell knows the id before its child has become `sleep`.
    await eventually(async () => (await commandLineOf(await compilerPid()))?.includes("sleep"));
    giveUp.abort(new Error("Ctrl-C"));
    await expect(found).rejects.toThrow("Ctrl-C");
    const pid = await compilerPid();
    await eventually(async () => (await commandLineOf(pid)) === null);
    expect(await readdir(dirname(cached))).toEqual([]);
    const goFolder = (await readFile(halfBuilt, "utf8")).trim();
    expect(goFolder).not.toBe("");
    expect(existsSync(goFolder)).toBe(false);
  });
});

describe("a release that is not right leaves nothing in the cache", () => {
  test.each([
    [
      "has a wrong checksum",
      /checksum of .* is wrong/,
      (name: string, content: Buffer) => ({
        SHA256SUMS: `${"a".repeat(64)}  ${name}\n`,
        [name]: content,
      }),
    ],
    [
      "is truncated",
      /checksum of .* is wrong/,
      (name: string, content: Buffer) => ({
        SHA256SUMS: checksumLine(name, content),
        [name]: content.subarray(0, content.length - 20),
      }),
    ],
    [
      "breaks off in the middle",
      /could not be downloaded/,
      (name: string, content: Buffer) => ({
        SHA256SUMS: checksumLine(name, content),
        [name]: (response: import("node:http").ServerResponse) => {
          response.writeHead(200, { "content-length": String(content.length) });
          response.write(content.subarray(0, 10), () => response.destroy());
        },
      }),
    ],
    [
      "is not there",
      /HTTP status 404/,
      (name: string, content: Buffer) => ({ SHA256SUMS: checksumLine(name, content) }),
    ],
    [
      "has no list of checksums",
      /SHA256SUMS could not be downloaded: HTTP status 404/,
      (name: string, content: Buffer) => ({
        [name]: content,
      }),
    ],
    [
      "is not listed",
      /does not list/,
      (name: string, content: Buffer) => ({ SHA256SUMS: "", [name]: content }),
    ],
    ["never answers", /no answer within 2000 ms/, () => ({ SHA256SUMS: () => {} })],
    [
      "hangs in the middle",
      /nothing came for 2000 ms/,
      (name: string, content: Buffer) => ({
        SHA256SUMS: checksumLine(name, content),
        [name]: (response: import("node:http").ServerResponse) => {
          response.writeHead(200);
          response.write(content.subarray(0, 10));
        },
      }),
    ],
    [
      "holds another version",
      /version 2\.9\.0/,
      (name: string) => {
        const other = release("2.9.0").content;
        return { SHA256SUMS: checksumLine(name, other), [name]: other };
      },
    ],
    [
      "does not hold the server",
      /does not hold/,
      (name: string) => {
        const other = tarGz("README.md", "hello");
        return { SHA256SUMS: checksumLine(name, other), [name]: other };
      },
    ],
  ])("because it %s", async (_how, reason, files) => {
    const { archive, content } = release();
    await using host = await releaseServer(files(archive.name, content));
    const { found, cached } = lookUp({ NATS_SERVER_DOWNLOAD_URL: host.url });
    await expect(found).rejects.toThrow(reason);
    expect(existsSync(cached)).toBe(false);
    expect(await readdir(dirname(cached))).toEqual([]);
  });
});

test("many launchers at once share one cache and none sees a broken file", async () => {
  const { archive, content } = release();
  await using host = await releaseServer({
    SHA256SUMS: checksumLine(archive.name, content),
    [archive.name]: content,
  });
  const all = Array.from({ length: 8 }, () => lookUp({ NATS_SERVER_DOWNLOAD_URL: host.url }));
  for (const { found, cached } of all) expect(await found).toMatchObject({ path: cached });
  expect(await readdir(join(folder, "cache", "devmesh"))).toEqual([`nats-server-v${PINNED_VERSION}`]);
});
