import { repository } from "@devmesh/launcher/mesh/service-process";
import { startRecordedMesh } from "./fixtures.ts";
import { oldClient } from "./old-client.ts";
import { knownContracts, type RecordedCall, writeRecording } from "./recording.ts";
import { shapeOf } from "./shape.ts";

// Makes all recorded calls and adds the answers to new ones. Old answers stay: an old client still expects them.

await using recorded = await startRecordedMesh();
await using client = await oldClient(recorded.mesh, recorded.madeUp);
for (const { service, version, surface, recording } of await knownContracts(repository)) {
  const calls: RecordedCall[] = [];
  for (const call of recording.calls) {
    const subject = surface.methods[call.method]?.subject;
    if (subject === undefined) throw new Error(`${service} has no method ${call.method}`);
    const answer = await client.call(subject, call);
    const isNew = call.reply === undefined && call.error === undefined;
    if (!isNew) calls.push(call);
    else if ("reply" in answer) calls.push({ ...call, reply: shapeOf(answer.reply) });
    else if (answer.details === undefined) calls.push({ ...call, error: answer.error });
    else calls.push({ ...call, error: answer.error, details: shapeOf(answer.details) });
    if (isNew)
      process.stdout.write(`${service}.${call.method}: ${"error" in answer ? answer.error : "answered"}\n`);
  }
  await writeRecording(repository, service, version, { ...recording, calls });
}
