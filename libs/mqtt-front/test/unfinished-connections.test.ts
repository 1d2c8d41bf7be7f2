import { describe, expect, test } from "@jest/globals";
import { addressGroup } from "../src/address-group.ts";
import { AddressQueue } from "../src/address-queue.ts";
import { UnfinishedConnections } from "../src/listener/unfinished-connections.ts";

describe("connections without a CONNECT", () => {
  test("of an address push out the oldest one of that address", () => {
    const unfinished = new UnfinishedConnections<string>({ perAddress: 2, total: 10 });
    const pushedOut = ["a1", "a2", "b1", "a3", "a4"].map((name) =>
      unfinished.add(name, `10.0.0.${name.charCodeAt(0)}`),
    );
    expect(pushedOut).toEqual([null, null, null, "a1", "a2"]);
    expect(unfinished.count).toBe(3);
  });

  test("beyond all that are allowed push out the oldest one of the address with most", () => {
    const unfinished = new UnfinishedConnections<string>({ perAddress: 10, total: 4 });
    const add = (name: string) => unfinished.add(name, `10.0.0.${name.charCodeAt(0)}`);
    expect(["a1", "a2", "a3", "b1", "c1", "c2", "b2"].map(add)).toEqual([
      null,
      null,
      null,
      null,
      "a1",
      "a2",
      "c1",
    ]);
    unfinished.remove("b2", "10.0.0.98");
    unfinished.remove("b2", "10.0.0.98");
    expect(unfinished.count).toBe(3);
    expect(add("d1")).toBe(null);
  });

  test("count by network of 64 bits in IPv6", () => {
    expect(
      [
        "2001:db8::1",
        "2001:db8:0:0:ffff::2",
        "2001:db8:0:1::1",
        "::1",
        "fe80::1%eth0",
        "::ffff:10.0.0.1",
        "10.0.0.1",
      ].map(addressGroup),
    ).toEqual([
      "2001:db8:0:0::/64",
      "2001:db8:0:0::/64",
      "2001:db8:0:1::/64",
      "0:0:0:0::/64",
      "fe80:0:0:0::/64",
      "10.0.0.1",
      "10.0.0.1",
    ]);
  });
});

test("tasks of addresses take turns, whatever waits of one of them", async () => {
  const queue = new AddressQueue(1);
  const order: string[] = [];
  const first = Promise.withResolvers<void>();
  const tasks = ["a0", "a1", "a2", "a3", "b1", "c1", "b2"].map((name) =>
    queue.run(`10.0.0.${name.charCodeAt(0)}`, async () => {
      if (name === "a0") await first.promise;
      order.push(name);
      if (name === "c1") throw new Error("failed");
    }),
  );
  first.resolve();
  await Promise.allSettled(tasks);
  expect(order).toEqual(["a0", "a1", "b1", "c1", "a2", "b2", "a3"]);
  expect(await queue.run("10.0.0.1", async () => "free")).toBe("free");
});
