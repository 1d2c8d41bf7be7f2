import type { DiagnosisReport } from "@devmesh/contracts/model/diagnostics";
import { createLogger } from "@devmesh/service-kit/logger";
import { createCallContext } from "@devmesh/service-kit/rpc/context";
import { ManualClock } from "@devmesh/service-kit/testing/manual-clock";
import { describe, expect, test } from "@jest/globals";
import { Background } from "../src/background.ts";
import { DiagnosisHistory } from "../src/diagnostics/diagnosis-history.ts";
import { createDiagnostics } from "../src/diagnostics/diagnostics.ts";
import { startDevicesFixture } from "./devices-fixture.ts";

const start = Date.parse("2026-01-01T00:00:00.000Z");
const time = (second: number) => new Date(start + second * 1_000).toISOString();

function refusal(id: string, second: number, more: Partial<DiagnosisReport> = {}): DiagnosisReport {
  const nothing = { address: null, client_id: null, topic: null, detail: null };
  const what = { name: "login_refused", reason: "wrong_password" } as const;
  return { ...nothing, ...what, id, count: 1, registered: true, timestamp: time(second), ...more };
}

describe("the history of a device", () => {
  test("combines equal entries less than a minute apart, also with others in between, and keeps their order", () => {
    const history = new DiagnosisHistory();
    history.add(refusal("pump", 0));
    history.add(refusal("pump", 10, { name: "connected", reason: null }));
    history.add(refusal("pump", 30, { count: 4 }));
    history.add(refusal("pump", 89));
    history.add(refusal("pump", 149));
    expect(history.ofDevice("pump", start)).toMatchObject([
      { name: "login_refused", count: 1, first_at: time(149), last_at: time(149) },
      { name: "login_refused", count: 6, first_at: time(0), last_at: time(89) },
      { name: "connected", count: 1, first_at: time(10) },
    ]);
  });

  test("is in the order of time where reports arrive in another", () => {
    const history = new DiagnosisHistory();
    history.add(refusal("pump", 2, { name: "connected", reason: null }));
    history.add(refusal("pump", 1));
    expect(history.ofDevice("pump", start).map(({ name }) => name)).toEqual(["connected", "login_refused"]);
  });

  test("an earlier equal report that arrives later changes when an entry began, not when it ended", () => {
    const history = new DiagnosisHistory();
    history.add(refusal("pump", 20, { detail: "newer" }));
    history.add(refusal("pump", 15, { name: "publication_refused" }));
    expect(history.add(refusal("pump", 10, { detail: "older" }))).toMatchObject({
      count: 2,
      detail: "newer",
      first_at: time(10),
      last_at: time(20),
    });
    expect(history.ofDevice("pump", start).map(({ name }) => name)).toEqual([
      "login_refused",
      "publication_refused",
    ]);
  });

  test("of all devices lists an entry once where entries of its time arrive between two pages", () => {
    const history = new DiagnosisHistory();
    for (const address of ["10.0.0.1", "10.0.0.2", "10.0.0.3"]) history.add(refusal("pump", 1, { address }));
    const [first] = history.list({}) ?? [];
    history.add(refusal("pump", 1, { address: "10.0.0.4" }));
    history.add(refusal("pump", 2, { address: "10.0.0.5" }));
    const rest = history.list({ after: first?.cursor ?? "" }) ?? [];
    expect([first, ...rest].map((entry) => entry?.describe().address)).toEqual([
      "10.0.0.3",
      "10.0.0.2",
      "10.0.0.1",
    ]);
  });

  test("has the last 50 entries of a device, and nothing of an earlier one of its id", () => {
    const history = new DiagnosisHistory();
    for (let n = 0; n < 200; n++) history.add(refusal("pump", n, { address: `10.0.0.${n}` }));
    expect(history.ofDevice("pump", start)).toHaveLength(50);
    expect(history.ofDevice("pump", start)[0]).toMatchObject({ address: "10.0.0.199" });
    expect(history.ofDevice("pump", start + 197_000)).toHaveLength(5);
    expect(history.total).toBe(50);
  });

  test("has 50,000 entries of all devices at most: the device that was quiet for longest is forgotten", () => {
    const history = new DiagnosisHistory();
    const ofDay = 50_000;
    for (let n = 0; n < ofDay; n++) history.add(refusal(`pump-${n}`, n));
    history.add(refusal("pump-0", ofDay, { reason: "wrong_client_id" }));
    expect(history.total).toBe(ofDay);
    expect(history.ofDevice("pump-0", start)).toHaveLength(2);
    expect(history.ofDevice("pump-1", start)).toEqual([]);
    expect(history.ofDevice("pump-2", start)).toHaveLength(1);
  });
});

describe("logins under unknown ids", () => {
  const unknown = { registered: false, reason: "unknown_device" } as const;

  test("are the last 50 different ones, with a count each, and none of them is a device's", () => {
    const history = new DiagnosisHistory();
    for (let n = 0; n < 200; n++) history.add(refusal(`ghost-${n}`, n, unknown));
    for (let n = 1; n <= 9; n++) history.add(refusal("ghost-180", 1_000 * n, unknown));
    const tried = history.ofUnknown();
    expect(tried).toHaveLength(50);
    expect(tried[0]).toMatchObject({ id: "ghost-180", count: 10, first_at: time(180), last_at: time(9_000) });
    expect(history.ofDevice("ghost-180", start)).toEqual([]);
    expect(history.total).toBe(0);
  });

  test("where `keys` does not know whether there is such a device, it counts if something is known of it", () => {
    const history = new DiagnosisHistory();
    history.add(refusal("pump", 0));
    for (const id of ["pump", "ghost"])
      history.add(refusal(id, 1, { registered: null, reason: "timed_out" }));
    expect(history.ofDevice("pump", start)).toHaveLength(2);
    expect(history.ofUnknown()).toMatchObject([{ id: "ghost", reason: "timed_out" }]);
    const topic = { registered: null, name: "publication_refused", reason: "topic" } as const;
    expect(history.add(refusal("pump", 2, topic))).not.toBeNull();
    expect(history.add(refusal("ghost", 2, topic))).toBeNull();
  });
});

describe("what is published", () => {
  function world() {
    const clock = new ManualClock();
    const log = createLogger({ service: "test", level: "silent" });
    const background = new Background({ clock, signal: new AbortController().signal, log });
    const published: string[] = [];
    const events = {
      diagnosed: async (
        id: string,
        { name, reason, count }: { name: string; reason: string | null; count: number },
      ) => void published.push(`${name} ${reason} ${id} ${count}`),
    };
    return { clock, background, published, diagnostics: createDiagnostics({ events, background, clock }) };
  }

  test("names a problem with the number of equal ones so far, no connection, and no id that no device can have", async () => {
    const { diagnostics, background, published } = world();
    diagnostics.record([refusal("pump", 0, { count: 3 }), refusal("pump", 1)]);
    diagnostics.record([refusal("no/id", 1, { registered: false, reason: "bad_user_name" })]);
    const connection = { deviceId: "pump", serverId: "S1", connectionId: 1, mqttClientId: "pump" };
    const traffic = { openMs: 1_000, received: { messages: 0, bytes: 0 } };
    const event = { ...connection, ...traffic, address: "10.0.0.1", at: new Date(start) };
    diagnostics.connected({ ...event, reason: null });
    diagnostics.disconnected({ ...event, reason: "client_closed" });
    diagnostics.disconnected({ ...event, reason: "duplicate_client_id" });
    diagnostics.throttled({ id: "pump", timestamp: time(0), why: "bytes", refused_ms: 1 });
    await background.settled();
    expect(published).toEqual([
      "login_refused wrong_password pump 3",
      "login_refused wrong_password pump 4",
      "session_taken_over duplicate_client_id pump 1",
    ]);
  });

  test("of a flood is ten of a device and then one in ten seconds, and unknown ids share sixty", async () => {
    const { clock, diagnostics, background, published } = world();
    const flood = (second: number) => {
      diagnostics.record(Array.from({ length: 400 }, () => refusal("pump", second)));
      diagnostics.record(
        Array.from({ length: 100 }, (_, n) => refusal(`ghost-${second}-${n}`, second, { registered: false })),
      );
    };
    flood(0);
    await background.settled();
    expect(published.filter((line) => line.includes("pump"))).toHaveLength(10);
    expect(published.filter((line) => line.includes("ghost"))).toHaveLength(60);
    await clock.advance(20_000);
    flood(20);
    await background.settled();
    expect(published.filter((line) => line.includes("pump"))).toHaveLength(12);
    expect(published.filter((line) => line.includes("ghost"))).toHaveLength(80);
  });
});

describe("the service", () => {
  test("answers what happened to a device since it exists, and which ids are no device", async () => {
    await using mesh = await startDevicesFixture();
    using call = createCallContext({ timeoutMs: 10_000 });
    const life = await mesh.start();
    const of = (id: string) => mesh.devices.readDiagnostics({ id }, call);
    await expect(of("pump")).rejects.toMatchObject({ reason: "device_not_found" });
    await mesh.devices.createDevice({ id: "pump" }, call);
    expect(await of("pump")).toEqual([]);

    const old = mesh.broker.login("pump");
    mesh.broker.leave(old, { reason: "duplicate_client_id" });
    expect(await of("pump")).toMatchObject([
      { name: "session_taken_over", address: "10.0.0.1", client_id: "pump:1" },
      { name: "connected", address: "10.0.0.1", client_id: "pump:1" },
    ]);

    const unknown = { registered: false, reason: "unknown_device" } as const;
    life.tell({ reports: [refusal("ghost", 0, unknown), refusal("late", 0, unknown)] });
    await mesh.devices.createDevice({ id: "late" }, call);
    expect(await mesh.devices.listUnknownDevices({}, call)).toMatchObject([{ id: "ghost", count: 1 }]);
  });

  test("knows after a restart from where its devices are connected", async () => {
    await using mesh = await startDevicesFixture();
    using call = createCallContext({ timeoutMs: 10_000 });
    const first = await mesh.start();
    await mesh.devices.createDevice({ id: "pump" }, call);
    mesh.broker.login("pump");
    await first.crash();
    await mesh.start();
    expect(await mesh.devices.readDiagnostics({ id: "pump" }, call)).toMatchObject([
      { name: "connected", address: "10.0.0.1", client_id: "pump:1" },
    ]);
  });
});
