import { appendFile, rename } from "node:fs/promises";
import { join, resolve } from "node:path";
import { DiagnosisReports } from "@devmesh/contracts/model/diagnostics";
import { meshUser } from "@devmesh/service-kit/subjects";
import { startBroker } from "@devmesh/testkit/broker";
import { eventually } from "@devmesh/testkit/eventually";
import { connectNats } from "@devmesh/testkit/nats-connection";
import { startProcess } from "@devmesh/testkit/process";
import { tempFolder } from "@devmesh/testkit/temp-folder";
import { expect, test } from "@jest/globals";

const program = resolve(import.meta.dirname, "../src/broker-log/main.ts");
const from = "[7] 2026/01/01 00:00:00.000000 [ERR] 10.0.0.7:45168 - mid:54";
const refusal = (device: string, topic: string) =>
  `${from} - "${device}" - Publish Violation - Subject "${topic}"\n`;

test("the log of nats-server is printed without tokens, also after rotations, and its refusals reach `devices`", async () => {
  await using broker = await startBroker();
  await using folder = await tempFolder();
  const file = join(folder.path, "nats-server.log");
  const login = { user: meshUser("devices"), password: broker.passwords.devices ?? "" };
  await using devices = await connectNats({ port: broker.port, ...login });
  const topics: (string | null)[] = [];
  await devices.subscribe("live.broker-log.diagnostics.*", ({ payload }) => {
    for (const { topic } of DiagnosisReports.parse(JSON.parse(payload)).reports) topics.push(topic);
  });

  await appendFile(file, refusal("pump", "before.its.start"));
  const { PATH, NODE_COMPILE_CACHE } = process.env;
  await using reader = startProcess(process.execPath, ["--disable-warning=ExperimentalWarning", program], {
    env: { PATH, NODE_COMPILE_CACHE, ...broker.environmentOf("broker-log"), BROKER_LOG: file },
  });
  await eventually(() => reader.output().includes('"ready"'));
  await appendFile(file, refusal("pump", "other.tank"));
  await eventually(() => topics.includes("other/tank"));

  // As nats-server begins another file.
  await appendFile(file, refusal("lamp", "last.of.the.first"));
  await rename(file, `${file}.2026.01.01.00.00.00.000000000`);
  await appendFile(file, refusal("door", "first.of.the.second"));
  await appendFile(file, `${from} - authentication error - User "dt_${"a".repeat(32)}"\n`);
  await eventually(() => topics.includes("first/of/the/second") && topics.length === 3).catch(
    () => undefined,
  );
  expect(topics).toEqual(["other/tank", "last/of/the/first", "first/of/the/second"]);
  await eventually(() => reader.output().includes('User "dt_[redacted]"'));
  expect(reader.output()).not.toContain("before.its.start");
  expect(await reader.end()).toBe(0);
});

test("its user of the broker publishes what it reads, and nothing else", async () => {
  await using broker = await startBroker();
  const login = { user: meshUser("broker-log"), password: broker.passwords["broker-log"] ?? "" };
  await using reader = await connectNats({ port: broker.port, ...login });
  await reader.tryPublish("live.broker-log.diagnostics.all", "{}");
  for (const subject of ["live.keys.diagnostics.all", "event.devices.deleted.pump", "$JS.API.INFO"])
    await expect(reader.tryPublish(subject)).rejects.toThrow(/permissions violation/i);
  await expect(reader.subscribe("live.>", () => undefined)).rejects.toThrow(/permissions violation/i);
});
