import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { jobs } from "@devmesh/contracts/jobs";
import { systemClock } from "@devmesh/service-kit/clock";
import { tempFolder } from "@devmesh/testkit/temp-folder";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { createDownloads } from "../src/firmware/downloads.ts";
import { digestOfTicket, newTicket, urlOfTicket } from "../src/firmware/tickets.ts";
import type { StoredExecution } from "../src/store/execution-store.ts";
import { openSqliteJobsStore } from "../src/store/jobs-store.sqlite.ts";
import type { JobsStore } from "../src/store/jobs-store.ts";
import { claimed, newExecution } from "./execution-store.suite.ts";

const { signal } = new AbortController();
const context = {
  signal,
  fail(reason: string): never {
    throw new Error(reason);
  },
} as never;
const file = { id: "f1", sha256: "0".repeat(64), md5: null, size: 1_000 };

let folder: Awaited<ReturnType<typeof tempFolder>>;
let store: JobsStore;
let changes: StoredExecution[];
beforeEach(async () => {
  folder = await tempFolder();
  store = openSqliteJobsStore(join(folder.path, `${randomUUID()}.db`));
  changes = [];
  await store.firmware.insert(
    {
      ...{
        ...file,
        name: "pump",
        version: "1",
        reported_as: "1",
        requires: null,
        signature: null,
        note: null,
      },
      ...{ created_at: 1, created_by: { kind: "master", key_id: "k" }, content: "upload" },
    },
    9,
    signal,
  );
});
afterEach(async () => {
  await store.close();
  await folder.remove();
});

const downloads = () =>
  createDownloads({
    store: store.executions,
    firmware: store.firmware,
    events: { changed: (execution) => changes.push(execution) },
    clock: systemClock,
  });

/** Stores an execution that a device downloads for, and returns it with its ticket. */
async function transferring(more: Partial<StoredExecution> = {}) {
  const ticket = newTicket();
  const action = {
    kind: "firmware",
    firmware_id: file.id,
    via: "url",
    stable: "PT1M",
    timeout: "PT1H",
    chunk: 2_048,
  };
  const execution = newExecution("pump", { action: action as StoredExecution["action"] });
  await store.executions.insert(execution, { most: 100, mostOfKind: 100 }, signal);
  const sent = {
    ...claimed(execution),
    stage: "transferring" as const,
    update: { from: "1", gone: false, seen: false, version: "1", since: 1_500 },
    ticket: digestOfTicket(ticket),
    ...more,
  };
  await store.executions.change([sent], signal);
  return { ticket, execution: sent };
}

const stored = async (id: string) => (await store.executions.find(id, signal))?.execution;

describe("a ticket", () => {
  test("opens the file of its execution until that ends", async () => {
    const { ticket, execution } = await transferring();
    expect(await downloads().openTicket({ ticket }, context)).toEqual({
      execution_id: execution.id,
      firmware: file,
    });
    const ended = { ...execution, state: "cancelled" as const, due_at: null, ended_at: 3_000, revision: 4 };
    await store.executions.change([ended], signal);
    await expect(downloads().openTicket({ ticket }, context)).rejects.toThrow("ticket_ended");
    await expect(downloads().noteDownload({ ticket, bytes: 1 }, context)).rejects.toThrow("ticket_ended");
  });

  test("that nobody made, or of an attempt before, opens nothing", async () => {
    const { ticket, execution } = await transferring();
    await expect(downloads().openTicket({ ticket: newTicket() }, context)).rejects.toThrow("ticket_unknown");
    const again = { ...execution, ticket: digestOfTicket(newTicket()), revision: 3 };
    await store.executions.change([again], signal);
    await expect(downloads().openTicket({ ticket }, context)).rejects.toThrow("ticket_unknown");
  });

  test("is in the URL below the public one, and fits the contract", () => {
    const ticket = newTicket();
    expect(urlOfTicket("https://mesh.example.com/", ticket)).toBe(
      `https://mesh.example.com/api/v2/ota/${ticket}`,
    );
    expect(jobs.methods.openTicket.in.parse({ ticket })).toEqual({ ticket });
  });
});

describe("a download that is noted", () => {
  test("is the percent of the execution, which a late note or another beginning does not lower", async () => {
    const { ticket, execution } = await transferring();
    for (const [bytes, percent] of [
      [100, 10],
      [559, 55],
      [200, 55],
      [1_000, 100],
      [5_000, 100],
    ] as const) {
      await downloads().noteDownload({ ticket, bytes }, context);
      expect((await stored(execution.id))?.percent).toBe(percent);
    }
    expect(changes.map(({ percent }) => percent)).toEqual([10, 55, 100]);
  });

  test("has begun when its ticket is opened", async () => {
    const { ticket, execution } = await transferring();
    for (let time = 0; time < 2; time++) await downloads().openTicket({ ticket }, context);
    expect((await stored(execution.id))?.percent).toBe(0);
    expect(changes).toHaveLength(1);
  });

  test("is noted by one of those who change the execution at a time, and lost by none", async () => {
    const { ticket, execution } = await transferring();
    const notes = [100, 200, 300, 400].map((bytes) => downloads().noteDownload({ ticket, bytes }, context));
    await Promise.all(notes);
    expect((await stored(execution.id))?.percent).toBe(40);
  });

  test("changes nothing once the device boots", async () => {
    const { ticket, execution } = await transferring({ stage: "rebooting", percent: 100 });
    await downloads().noteDownload({ ticket, bytes: 500 }, context);
    expect(await stored(execution.id)).toEqual(execution);
  });
});
