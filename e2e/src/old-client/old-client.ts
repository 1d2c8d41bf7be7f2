import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Json } from "@devmesh/contracts/model/json";
import type { TestMesh } from "@devmesh/testkit/mesh";
import { connectNats, type NatsTestConnection } from "@devmesh/testkit/nats-connection";
import { z } from "zod";
import { filledIn, type MadeUp, type RecordedCall, valueAt } from "./recording.ts";

/** The reply as JSON, or the error that its headers mark. */
type RawAnswer =
  | { readonly reply: Json }
  | { readonly error: string; readonly code: string; readonly details: Json | undefined };

/**
 * The other end of a contract without code of this release: it sends what was recorded, as the user of the service that
 * sent it, and reads bytes.
 */
export interface OldClient extends AsyncDisposable {
  readonly madeUp: MadeUp;
  /** Makes a recorded call and stores the values of its `keep`. */
  call(subject: string, recorded: RecordedCall): Promise<RawAnswer>;
  /** The connection of a service's user. */
  connectionOf(service: string): Promise<NatsTestConnection>;
}

const WireError = z.looseObject({ code: z.string(), reason: z.string(), details: z.json().optional() });
const Passwords = z.object({ passwords: z.record(z.string(), z.string()) });

/** Longest wait for an answer, in milliseconds: more than any recorded deadline. */
const ANSWER_MS = 30_000;

export async function oldClient(mesh: TestMesh, madeUp: MadeUp): Promise<OldClient> {
  const { passwords } = Passwords.parse(
    JSON.parse(await readFile(join(mesh.dataDir, "installation.json"), "utf8")),
  );
  const connections = new Map<string, NatsTestConnection>();
  const connectionOf = async (user: string) => {
    const known = connections.get(user);
    if (known !== undefined) return known;
    const opened = await connectNats({
      port: mesh.ports.nats,
      user: `${user}.mesh`,
      ...(passwords[user] !== undefined && { password: passwords[user] }),
      inbox: `_INBOX_${user}.old`,
    });
    connections.set(user, opened);
    return opened;
  };
  return {
    madeUp,
    connectionOf,
    async call(subject, { caller, request, keep = {} }) {
      const connection = await connectionOf(caller);
      const { headers, payload } = await connection.request(
        subject,
        JSON.stringify(filledIn(request, madeUp)),
        ANSWER_MS,
      );
      const body: Json = z.json().parse(JSON.parse(payload));
      if (headers["Nats-Service-Error-Code"] !== undefined) {
        const { code, reason, details } = WireError.parse(body);
        return { error: reason, code, details };
      }
      for (const [name, pointer] of Object.entries(keep)) {
        const value = valueAt(body, pointer);
        if (value !== undefined) madeUp.set(name, value);
      }
      return { reply: body };
    },
    async [Symbol.asyncDispose]() {
      for (const opened of connections.values()) await opened.close();
    },
  };
}
