import { spawn } from "node:child_process";
import { once } from "node:events";
import { copyFile, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { tempFolder } from "@devmesh/testkit/temp-folder";
import { expect, test } from "@jest/globals";
import { openSqliteDataStore } from "../src/store/data-store.sqlite.ts";
import { naive, readSpans, type Sample, sampleMessage } from "./series.suite.ts";

const start = Date.parse("2026-03-28T00:00:00.000Z");
const [minute, day] = [60_000, 86_400_000];
const kills = Number(process.env.SERIES_KILLS ?? 6);

test("a process that is killed while it rolls up adds nothing twice and loses nothing", async () => {
  await using folder = await tempFolder();
  const path = join(folder.path, "data.db");
  const samples: Sample[] = [];
  const edges = Array.from({ length: 121 }, (_, at) => start + at * day);
  /** Checks the days of all numbers, and stores more: a span each, of which parts are made. */
  async function checkAndStore() {
    const store = openSqliteDataStore(path, { readers: 1 });
    expect(await readSpans(store, "pump", edges, "hours")).toEqual(naive(samples, "pump", edges));
    const more = Array.from({ length: 4_000 }, (_, at) => ({
      deviceId: "pump",
      at: start + (((samples.length + at) * 7) % 30_000) * 5 * minute,
      value: at,
    }));
    samples.push(...more);
    await store.append(more.map(sampleMessage));
    await store.close();
  }

  await checkAndStore();
  await checkAndStore();
  for (let kill = 0; kill < kills; kill++) {
    const program = fileURLToPath(new URL("./rolling-process.ts", import.meta.url));
    const rolling = spawn(process.execPath, ["--disable-warning=ExperimentalWarning", program, path], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const ended = once(rolling, "exit");
    await once(createInterface(rolling.stdout), "line");
    // Before, in and after the commit of a part, in turns.
    await sleep(kill * 15);
    rolling.kill("SIGKILL");
    await ended;
    await checkAndStore();
  }
});

/** States of the log that are tried, evenly over a roll-up. */
const cuts = 20;

/** A frame of SQLite's log is a page with a header, which is marked in the last one of a commit. */
const frameHeaderBytes = 24;
const commitMarkAt = 4;
/** In the header of the log. */
const pageSizeAt = 8;

test("whatever a power cut leaves of the log of a roll-up, the numbers are those of all records", async () => {
  await using folder = await tempFolder();
  const path = join(folder.path, "data.db");
  // More spans than one part has.
  const samples = Array.from({ length: 6_000 }, (_, at) => ({
    deviceId: "pump",
    at: start + ((at * 7) % 6_000) * 5 * minute,
    value: at,
  }));
  const edges = Array.from({ length: 22 }, (_, at) => start + at * day);
  const store = openSqliteDataStore(path, { readers: 1 });
  await store.append(samples.map(sampleMessage));
  const stored = join(folder.path, "stored.db");
  await copyFile(path, stored);
  const { size: begin } = await stat(`${path}-wal`);
  while ((await store.rollUp()) === "more");
  const log = await readFile(`${path}-wal`);
  await store.close();

  const frameBytes = frameHeaderBytes + log.readUInt32BE(pageSizeAt);
  const frames = (log.length - begin) / frameBytes;
  const commits = Array.from({ length: frames }, (_, nth) =>
    log.readUInt32BE(begin + nth * frameBytes + commitMarkAt),
  ).filter((mark) => mark > 0);
  expect(frames).toBeGreaterThan(cuts);
  expect(commits.length).toBeGreaterThan(1);
  for (let cut = 0; cut <= cuts; cut++) {
    const left = join(folder.path, `cut-${cut}.db`);
    await copyFile(stored, left);
    await writeFile(`${left}-wal`, log.subarray(0, begin + Math.round((frames * cut) / cuts) * frameBytes));
    const again = openSqliteDataStore(left, { readers: 1 });
    while ((await again.rollUp()) === "more");
    expect(await readSpans(again, "pump", edges, "hours")).toEqual(naive(samples, "pump", edges));
    await again.close();
  }
});
