import { expect, test } from "@jest/globals";
import { Semaphore } from "../src/semaphore.ts";

test("permits go to the first queue first, in the order of arrival", async () => {
  const semaphore = new Semaphore({ permits: 1, queues: [10, 10] });
  const order: string[] = [];
  const first = await semaphore.acquire();
  const work = async (name: string, queue: number) => {
    using _ = await semaphore.acquire(queue);
    order.push(name);
  };
  const all = [work("second a", 1), work("second b", 1), work("first a", 0), work("first b", 0)];
  await new Promise((resolve) => setImmediate(resolve));
  expect(order).toEqual([]);
  first?.[Symbol.dispose]();
  await Promise.all(all);
  expect(order).toEqual(["first a", "first b", "second a", "second b"]);
});

test("a full queue is refused at once, the others are not", async () => {
  const semaphore = new Semaphore({ permits: 1, queues: [1, 1] });
  const running = await semaphore.acquire();
  const waiting = semaphore.acquire();
  expect(await semaphore.acquire()).toBeNull();
  const other = semaphore.acquire(1);
  running?.[Symbol.dispose]();
  (await waiting)?.[Symbol.dispose]();
  expect(await other).not.toBeNull();
});
