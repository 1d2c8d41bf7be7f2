import { z } from "zod";
import { createApiClient } from "../api/api-client.ts";
import { ApiProblem } from "../api/api-problem.ts";

/** Name of the sign-outs that did not reach the server, in the storage of the browser. */
const storageKey = "devmesh.unfinished-sign-outs";

/** Most of them; the oldest is dropped, and ends by its expiry. */
const mostUnfinished = 10;

/** A session that is to be ended. */
const SignOut = z.object({ id: z.string(), key: z.string() });
type SignOut = z.infer<typeof SignOut>;

/** `unreached`: it is repeated at the next start. */
type Ending = "done" | "unreached";

/** Repeats the sign-outs that did not reach the server. Returns a notice for the user; null if there was none. */
export async function repeatSignOuts(): Promise<string | null> {
  const unfinished = unfinishedSignOuts();
  if (unfinished.length === 0) return null;
  const endings = await Promise.all(unfinished.map(signOutOfServer));
  if (endings.includes("unreached"))
    return "An earlier sign-out still did not reach the server: its session may be valid there. The sign-out is repeated when this page is opened again.";
  return "An earlier sign-out had not reached the server. It has now, and its session has ended.";
}

/** Ends a session by its own key; it is stored until the server confirms it. */
export async function signOutOfServer({ id, key }: SignOut): Promise<Ending> {
  const others = () => unfinishedSignOuts().filter((other) => other.id !== id);
  store([...others(), { id, key }]);
  try {
    await createApiClient({ key }).call("endSession", { params: { id } });
  } catch (error) {
    const { status = 0, reason = "" } = error instanceof ApiProblem ? error : {};
    // 401 and 404: it has ended already.
    if (status !== 401 && reason !== "session_not_found") return "unreached";
  }
  store(others());
  return "done";
}

/** Sign-outs that the server has not confirmed. */
function unfinishedSignOuts(): readonly SignOut[] {
  return parsed(z.array(SignOut), localStorage.getItem(storageKey)) ?? [];
}

function store(unfinished: readonly SignOut[]): void {
  if (unfinished.length === 0) localStorage.removeItem(storageKey);
  else localStorage.setItem(storageKey, JSON.stringify(unfinished.slice(-mostUnfinished)));
}

function parsed<T>(schema: z.ZodType<T>, text: string | null): T | null {
  return text === null ? null : (schema.safeParse(JSON.parse(text)).data ?? null);
}
