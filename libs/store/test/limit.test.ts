import { randomUUID } from "node:crypto";
import { fileURLToPath } from "node:url";
import { describeOverMongodb } from "@devmesh/testkit/describe-over-mongodb";
import { eventually } from "@devmesh/testkit/eventually";
import type { TestDatabase } from "@devmesh/testkit/mongodb";
import { startProcess } from "@devmesh/testkit/process";
import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { openLimitedThings } from "./limited-things.ts";

const { signal } = new AbortController();
type Things = Awaited<ReturnType<typeof openLimitedThings>>;

describeOverMongodb("a limit over MongoDB", (mongodb) => {
  let database: TestDatabase;
  let one: Things;
  let other: Things;
  /** The time of both replicas, in milliseconds. */
  let nowMs = 0;
  beforeEach(async () => {
    database = mongodb().newDatabase();
    const open = () => openLimitedThings(database.storeUrl, signal, () => nowMs);
    [one, other] = [await open(), await open()];
  });
  afterEach(async () => {
    await Promise.all([one.close(), other.close()]);
    await database[Symbol.asyncDispose]();
  });

  const insertMany = (many: number, most: number) =>
    Promise.all(Array.from({ length: many }, (_, at) => (at % 2 ? one : other).insert(randomUUID(), most)));

  /** Looks as often as the owner of the things does, for so many minutes. */
  async function sweep(minutes: number): Promise<void> {
    for (let minute = 0; minute <= minutes; minute++) {
      await Promise.all([one.limit.correct(signal), other.limit.correct(signal)]);
      nowMs += 60_000;
    }
  }

  /** Kills a replica between the two steps of an insert, or of the removal of the thing `one`. */
  async function killBetween(step: "insert" | "remove"): Promise<void> {
    const program = fileURLToPath(new URL("./limit-process.ts", import.meta.url));
    await using replica = startProcess(process.execPath, [program, database.storeUrl, step]);
    await eventually(() => replica.output().includes("between"));
    await replica.end("SIGKILL");
  }

  test("two replicas that insert at the same time store as many as there may be, and not one more", async () => {
    const stored = await insertMany(60, 10);
    expect(stored.filter(Boolean)).toHaveLength(10);
    expect(await one.count()).toBe(10);
  });

  test("the first inserts, which come at the same time, find room", async () => {
    const stored = await insertMany(40, 1_000);
    expect(stored.filter(Boolean)).toHaveLength(40);
  });

  test("it holds while two replicas insert and remove at the same time", async () => {
    const ids = Array.from({ length: 8 }, () => randomUUID());
    const counts: number[] = [];
    for (let round = 0; round < 10; round++) {
      await Promise.all([
        ...ids.map((id, at) => (at % 2 ? one : other).insert(id, 5)),
        ...ids.slice(0, 4).map((id, at) => (at % 2 ? other : one).remove(id)),
      ]);
      counts.push(await one.count());
    }
    expect(Math.max(...counts)).toBeLessThanOrEqual(5);
    await Promise.all(ids.map((id) => one.remove(id)));
    // Neither refused inserts nor removals that found nothing have used up a place.
    expect((await insertMany(20, 5)).filter(Boolean)).toHaveLength(5);
  });

  test("a thing that is there already takes no place, and a removed one gives its place back", async () => {
    expect([await one.insert("a", 2), await other.insert("a", 2), await one.insert("b", 2)]).toEqual([
      true,
      false,
      true,
    ]);
    expect(await one.insert("c", 2)).toBe(false);
    expect([await other.remove("a"), await other.remove("a")]).toEqual([1, 0]);
    expect([await one.insert("c", 2), await other.insert("d", 2)]).toEqual([true, false]);
  });

  test("a thing can take more than one of the limit", async () => {
    expect([
      await one.insert("a", 10, 7),
      await one.insert("b", 10, 4),
      await one.insert("c", 10, 3),
    ]).toEqual([true, false, true]);
  });

  test("what an earlier release has stored counts", async () => {
    for (const id of ["a", "b", "c"]) await one.put(id);
    expect((await insertMany(10, 5)).filter(Boolean)).toHaveLength(2);
    expect(await one.count()).toBe(5);
  });

  test("a replica that is killed between the steps leaves a count that is too high, until it is corrected", async () => {
    expect(await one.insert("one", 2)).toBe(true);
    await killBetween("insert");
    expect(await one.insert("two", 2)).toBe(false);
    await sweep(2);
    expect([await one.insert("two", 2), await other.insert("three", 2)]).toEqual([true, false]);
    await killBetween("remove");
    expect(await one.insert("three", 2)).toBe(false);
    await sweep(2);
    expect([await one.insert("three", 2), await other.insert("four", 2)]).toEqual([true, false]);
    expect(await one.count()).toBe(2);
  });

  test("a correction does not take away the place of an insert under way", async () => {
    const reserved = Promise.withResolvers<void>();
    const stored = Promise.withResolvers<boolean>();
    const slow = one.limit.insert(
      1,
      () => {
        reserved.resolve();
        return stored.promise;
      },
      signal,
    );
    await reserved.promise;
    await sweep(0);
    expect(await other.insert("b", 1)).toBe(false);
    stored.resolve(await one.put("a"));
    expect(await slow).toBe(true);
    await sweep(3);
    expect(await other.insert("b", 1)).toBe(false);
  });

  test("a removal that a correction overtakes is not subtracted twice", async () => {
    await one.insert("a", 2);
    await one.insert("b", 2);
    await one.limit.remove(async () => {
      const dropped = await one.drop("a");
      await sweep(2);
      return dropped;
    }, signal);
    expect([await one.insert("c", 2), await other.insert("d", 2)]).toEqual([true, false]);
  });
});
