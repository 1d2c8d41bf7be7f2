import { spawn } from "node:child_process";
import { once } from "node:events";
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
