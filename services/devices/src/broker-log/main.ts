import { Readable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { sidecars } from "@devmesh/contracts/mesh";
import type { DiagnosisReport } from "@devmesh/contracts/model/diagnostics";
import { createRefusedTopics, cutLine, redactedLine } from "@devmesh/device-broker/broker-log";
import { parseEnv } from "@devmesh/service-kit/process/env";
import { readLines } from "@devmesh/service-kit/process/line-reader";
import { runService } from "@devmesh/service-kit/process/run-service";
import { BrokerLogEnv } from "./env.ts";
import { followFile } from "./follow-file.ts";

/*
 * Runs beside a nats-server that writes its log to a file: prints each line without secrets, also before nats-server
 * can be reached, and reports refused topics to the service `devices` (ADR 25).
 */
const { BROKER_LOG } = parseEnv(BrokerLogEnv);
/** How long the last lines of nats-server may take, in milliseconds. */
const lastLinesMs = 500;

let publish = (_: { readonly reports: DiagnosisReport[] }): void => {};
const readRefusal = createRefusedTopics((event) => publish(event));
readLines(Readable.from(followFile(BROKER_LOG), { objectMode: false }), (received) => {
  const lines = received.map(redactedLine);
  process.stdout.write(`${lines.map(cutLine).join("\n")}\n`);
  for (const line of lines) readRefusal(line);
});

await runService({
  name: "broker-log",
  declaration: sidecars["broker-log"],
  env: BrokerLogEnv,
  async start({ publisher }) {
    publish = publisher.diagnostics;
    return { implementation: null, stop: () => sleep(lastLinesMs) };
  },
});
