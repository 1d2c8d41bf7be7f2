import type { DiagnosisReport } from "@devmesh/contracts/model/diagnostics";
import { ManualClock } from "@devmesh/service-kit/testing/manual-clock";
import { describe, expect, test } from "@jest/globals";
import { createDiagnosisReporter, type Finding } from "../src/diagnosis-reporter.ts";

function collected() {
  const clock = new ManualClock();
  const messages: (readonly DiagnosisReport[])[] = [];
  const report = createDiagnosisReporter({ clock, publish: ({ reports }) => messages.push(reports) });
  const refused = (id: string, more: Partial<Finding> = {}) =>
    report({ id, name: "login_refused", reason: "wrong_password", ...more });
  return { clock, messages, refused };
}

describe("reports of what happens to devices", () => {
  test("are one message a quarter of a second, with equal ones counted and the last one's details", async () => {
    const { clock, messages, refused } = collected();
    for (let n = 1; n <= 10_000; n++) refused("pump", { address: `10.0.0.${n % 200}` });
    refused("pump", { reason: "wrong_client_id" });
    expect(messages).toEqual([]);
    await clock.advance(250);
    expect(messages).toMatchObject([
      [
        { id: "pump", reason: "wrong_password", count: 10_000, address: "10.0.0.0", registered: true },
        { id: "pump", reason: "wrong_client_id", count: 1, address: null },
      ],
    ]);
    await clock.advance(10_000);
    expect(messages).toHaveLength(1);
    refused("pump");
    await clock.advance(250);
    expect(messages).toHaveLength(2);
  });

  test("of unknown ids do not displace those of devices, and a message stays below 512 KB", async () => {
    const { clock, messages, refused } = collected();
    const long = {
      client_id: "\u0000".repeat(60_000),
      topic: "\u0000".repeat(60_000),
      detail: "\u0000".repeat(999),
    };
    for (let n = 0; n < 5_000; n++)
      refused(`\u0000${"\u0001".repeat(70)}${n}`, { registered: false, ...long });
    for (let n = 0; n < 5_000; n++) refused(`ghost-${n}`, { registered: false, ...long });
    for (let n = 0; n < 5_000; n++) refused(`pump-${n}`);
    await clock.advance(250);
    const [reports = []] = messages;
    expect(reports.filter(({ registered }) => registered === false)).toHaveLength(100);
    expect(reports.filter(({ registered }) => registered === true)).toHaveLength(300);
    expect(Buffer.byteLength(JSON.stringify({ reports }))).toBeLessThan(512 * 1024);
  });

  test("name sixteen topics of a device and combine the others, each with the last one's detail", async () => {
    const { clock, messages, refused } = collected();
    for (let n = 0; n < 100; n++) refused("pump", { topic: `t/${n % 20}`, detail: `detail ${n}` });
    refused("fan", { topic: "t/1" });
    await clock.advance(250);
    const [reports = []] = messages;
    const ofPump = reports.filter(({ id }) => id === "pump");
    expect(ofPump.map(({ topic }) => topic)).toEqual([
      ...Array.from({ length: 16 }, (_, n) => `t/${n}`),
      null,
    ]);
    expect(ofPump.map(({ count }) => count)).toEqual([...Array.from({ length: 16 }, () => 5), 20]);
    expect(ofPump[3]).toMatchObject({ detail: "detail 83" });
    expect(reports.find(({ id }) => id === "fan")).toMatchObject({ topic: "t/1", detail: null });
  });

  test("show what cannot be seen in the names of strangers", async () => {
    const { clock, messages, refused } = collected();
    const names = { client_id: "\u200bpump-1\u0000", topic: "db/\u2066x" };
    refused("pump\u202e1-\u001b[2J", { registered: false, ...names });
    refused(`${"x".repeat(63)}🙂`, { registered: false });
    await clock.advance(250);
    expect(messages).toMatchObject([
      [
        { id: "pump\\u202e1-\\u001b[2J", client_id: "\\u200bpump-1\\u0000", topic: "db/\\u2066x" },
        { id: `${"x".repeat(63)}\ufffd` },
      ],
    ]);
  });

  test("hold no secret that a user put into the wrong field", async () => {
    const { clock, messages, refused } = collected();
    const secret = `dt_${"a".repeat(32)}`;
    refused(secret, {
      client_id: `x${secret}${secret}`,
      topic: `${"y".repeat(250)}${secret}`,
      registered: false,
    });
    await clock.advance(250);
    expect(JSON.stringify(messages)).not.toContain("aaa");
    expect(messages).toMatchObject([[{ id: "dt_[redacted]", client_id: "xdt_[redacted]dt_[redacted]" }]]);
  });
});
