import { ManualClock } from "@devmesh/service-kit/testing/manual-clock";
import { describe, expect, test } from "@jest/globals";
import type { DeviceSocket } from "../src/front/device-socket.ts";
import { SessionRegistry } from "../src/front/session-registry.ts";

/** Connections are only compared here. */
const socket = (name: string) => ({ name }) as unknown as DeviceSocket;

function open(
  registry: SessionRegistry,
  clientId: string,
  { clean = false, expiryMs = 1_000, by = socket(clientId) } = {},
) {
  const opened = registry.find(clientId, clean);
  registry.attach(opened.session, "d", by);
  opened.session.expiryMs = expiryMs;
  return opened;
}

describe("a session", () => {
  test("is continued until it expires", async () => {
    const clock = new ManualClock();
    const registry = new SessionRegistry(clock);
    const { session } = open(registry, "d");
    registry.detach(session);
    await clock.advance(999);
    expect(open(registry, "d")).toMatchObject({ session, isPresent: true });
    await clock.advance(10_000);
    registry.detach(session);
    await clock.advance(1_000);
    expect(open(registry, "d").isPresent).toBe(false);
  });

  test("that is not kept ends with its connection, also when it is taken over", () => {
    const registry = new SessionRegistry(new ManualClock());
    const { session } = open(registry, "d", { expiryMs: 0 });
    expect(registry.find("d", false)).toMatchObject({ isPresent: false, former: { name: "d" } });
    registry.detach(session);
    expect(registry.size).toBe(0);
  });

  test("of which a device has more than ten ends: the one whose client left first", () => {
    const registry = new SessionRegistry(new ManualClock());
    const opened = Array.from({ length: 12 }, (_, at) => open(registry, `d:${at}`).session);
    for (const at of [5, 3, 4]) registry.detach(opened[at] ?? (opened[0] as never));
    expect([5, 3, 4].map((at) => registry.find(`d:${at}`, false).isPresent)).toEqual([false, false, true]);
  });
});

describe("a will with a delay", () => {
  function leave(expiryMs: number, delayMs: number) {
    const clock = new ManualClock();
    const registry = new SessionRegistry(clock);
    const { session } = open(registry, "d", { expiryMs });
    const published: string[] = [];
    registry.delayWill(session, delayMs, () => published.push("will"));
    registry.detach(session);
    return { clock, registry, published };
  }

  test("is published after it, once", async () => {
    const { clock, published } = leave(10_000, 500);
    await clock.advance(499);
    expect(published).toEqual([]);
    await clock.advance(20_000);
    expect(published).toEqual(["will"]);
  });

  test("is dropped when the session goes on, and published when it ends", async () => {
    const goesOn = leave(10_000, 500);
    open(goesOn.registry, "d");
    await goesOn.clock.advance(1_000);
    expect(goesOn.published).toEqual([]);
    const ends = leave(10_000, 500);
    open(ends.registry, "d", { clean: true });
    expect(ends.published).toEqual(["will"]);
  });
});
