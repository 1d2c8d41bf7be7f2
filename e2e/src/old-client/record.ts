import { repository } from "@devmesh/testkit/mesh";
import { recordedSurroundings } from "./fixtures.ts";
import { knownContracts } from "./known-contracts.ts";
import { oldClient } from "./old-client.ts";
import { type RecordedCall, writeRecording } from "./recording.ts";
import { shapeOf } from "./shape.ts";

// Makes all recorded calls against a mesh of this release and notes what comes back to those that are new. What was
// recorded before is left as it is: an old client still expects it.

await using surroundings = await recordedSurroundings();
await using client = await oldClient(surroundings.mesh, surroundings.madeUp);
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
