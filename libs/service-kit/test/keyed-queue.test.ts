import { expect, test } from "@jest/globals";
import { KeyedQueue } from "../src/keyed-queue.ts";

test("work of one key runs in order, after failures too, and of different keys concurrently", async () => {
  const queue = new KeyedQueue();
  const log: string[] = [];
  const gates = new Map(["a1", "a2", "b1"].map((name) => [name, Promise.withResolvers<string>()]));
  const work = (name: string) => () => {
    log.push(`begins ${name}`);
    return gates.get(name)?.promise ?? Promise.reject(new Error(name));
  };
  const a1 = queue.run("a", work("a1"));
  const a2 = queue.run("a", work("a2"));
  const b1 = queue.run("b", work("b1"));
  gates.get("b1")?.resolve("b1");
  expect(await b1).toBe("b1");
  expect(log).toEqual(["begins a1", "begins b1"]);
  gates.get("a1")?.reject(new Error("a1 failed"));
  await expect(a1).rejects.toThrow("a1 failed");
  gates.get("a2")?.resolve("a2");
  expect(await a2).toBe("a2");
  expect(log).toEqual(["begins a1", "begins b1", "begins a2"]);
});
