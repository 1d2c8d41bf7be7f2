import { setTimeout as sleep } from "node:timers/promises";
import { parseJson } from "@devmesh/contracts/model/json";
import type { MeshAccess } from "@devmesh/supervisor/mesh/mesh-file";
import { z } from "zod";

/** Pause before the stream is opened again, in milliseconds. */
const reopenMs = 2_000;

const Refusal = z.union([
  z.object({ id: z.string(), name: z.literal("login_refused"), data: z.object({ reason: z.string() }) }),
  z.object({ id: z.string(), name: z.literal("throttled"), data: z.object({ why: z.string() }) }),
]);

/** Why the mesh refuses devices. */
export interface RefusalLog {
  /** Numbers by reason. */
  readonly counts: ReadonlyMap<string, number>;
  /** The last reason for a device; undefined for one that was not refused. */
  lastOf(id: string): string | undefined;
}

/**
 * Follows the notification stream until `signal` fires, since MQTT only returns to a device that it is refused.
 * `prefix`: that of the ids of the fleet's devices.
 */
export function followRefusals(
  { url, masterKey }: MeshAccess,
  prefix: string,
  signal: AbortSignal,
): RefusalLog {
  const counts = new Map<string, number>();
  const last = new Map<string, string>();

  function take(line: string): void {
    const frame = Refusal.safeParse(line.startsWith("data: ") ? parseJson(line.slice(6)) : undefined).data;
    if (!frame?.id.startsWith(`${prefix}-`)) return;
    const why = frame.name === "throttled" ? `too many ${frame.data.why}` : frame.data.reason;
    counts.set(why, (counts.get(why) ?? 0) + 1);
    last.set(frame.id, why);
  }

  async function follow(): Promise<void> {
    const headers = { Authorization: `Bearer ${masterKey}`, Accept: "text/event-stream" };
    const answer = await fetch(`${url}/api/v2/notify`, { headers, signal });
    let rest = "";
    for await (const text of answer.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      const lines = (rest + text).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) take(line);
    }
  }

  const following = async () => {
    while (!signal.aborted) {
      await follow().catch(() => undefined);
      await sleep(reopenMs, undefined, { signal }).catch(() => undefined);
    }
  };
  void following();
  return { counts, lastOf: (id) => last.get(id) };
}
