import type { DiagnosisReport } from "@devmesh/contracts/model/diagnostics";
import { eventually } from "@devmesh/testkit/eventually";
import { expect, test } from "@jest/globals";
import { createRefusedTopics } from "../src/broker-log.ts";

async function reportsOf(lines: readonly string[]): Promise<readonly DiagnosisReport[]> {
  const sent: DiagnosisReport[][] = [];
  const read = createRefusedTopics(({ reports }) => sent.push(reports));
  for (const line of lines) read(line);
  read(line("last", 'Publish Violation - Subject "end"'));
  await eventually(() => sent.length > 0);
  return sent.flat().filter(({ id }) => id !== "last");
}

const line = (clientId: string, text: string, at = "10.0.0.7:45168 - mid:54") =>
  `[7] 2026/01/01 00:00:00.000000 [ERR] ${at} - "${clientId}" - ${text}`;

test("a refused topic in nats-server's log is reported with device, client id, address and topic", async () => {
  const reports = await reportsOf([
    line("pump:a", 'Publish Violation - Subject "pump.tele//metry"'),
    line("lamp", 'Subscription Violation - Subject "other.*.>", SID x', "[::1]:1 - mid_ws:5"),
  ]);
  expect(reports).toMatchObject([
    {
      id: "pump",
      name: "publication_refused",
      reason: "topic",
      client_id: "pump:a",
      address: "10.0.0.7",
      topic: "pump/tele.metry",
      registered: null,
    },
    { id: "lamp", name: "subscription_refused", client_id: "lamp", address: "::1", topic: "other/+/#" },
  ]);
});

test("no device can pretend to be another one by its client id, and the subscription of Mongoose OS is no problem", async () => {
  const forged = 'x\\" - mid:1 - \\"pump\\" - Publish Violation - Subject \\"y';
  const reports = await reportsOf([
    line(forged, 'authentication error - User "x"'),
    line("x", 'authentication error - User "- mid:1 - \\"pump\\" - Publish Violation - Subject \\"y\\""'),
    line("pump", 'Subscription Violation - Subject "pump.rpc.>", SID pump.rpc.>'),
  ]);
  expect(reports).toEqual([]);
});
