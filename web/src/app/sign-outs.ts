import { keyPrefixes } from "@devmesh/contracts/model/api-key";
import { z } from "zod";
import { createApiClient } from "../api/api-client.ts";
import { ApiProblem } from "../api/api-problem.ts";

/** Name of the sign-outs that did not reach the server, in the storage of the browser. */
const storageKey = "devmesh.unfinished-sign-outs";

/** Most of them; the oldest is dropped, and ends by its expiry. */
const mostUnfinished = 10;

/** Where earlier releases kept a master key: in the storage of the tab, and one made for the browser. */
const formerTabKey = "devmesh.master-key";
const formerBrowserKey = "devmesh.lasting-key";

/** What is to be ended: a session, or a master key that an earlier release made for the browser. */
const SignOut = z.object({ id: z.string(), key: z.string() });
type SignOut = z.infer<typeof SignOut>;

/** `unreached`: it is repeated at the next start. */
type Ending = "done" | "unreached" | "last_master_key";

/**
 * Repeats the sign-outs that did not reach the server, and ends what an earlier release left. Returns what the user
 * should know; null if there was nothing.
 */
export async function repeatSignOuts(): Promise<string | null> {
  const isFormer = leaveFormerSession();
  const unfinished = unfinishedSignOuts();
  if (!isFormer && unfinished.length === 0) return null;
  const endings = await Promise.all(unfinished.map(signOutOfServer));
  if (endings.includes("last_master_key"))
    return "The master key that was made for this browser cannot be deleted, since it is the last one. It stays in the local storage of this browser until there is another one.";
  if (endings.includes("unreached"))
    return "An earlier sign-out still did not reach the server: its session may be valid there. The sign-out is repeated when this page is opened again.";
  return isFormer
    ? "The dashboard no longer keeps a master key in the browser. Sign in again."
    : "An earlier sign-out had not reached the server. It has now, and its session has ended.";
}

/** Ends a session, or a master key of an earlier release, by its own key; it is stored until the server confirms it. */
export async function signOutOfServer({ id, key }: SignOut): Promise<Ending> {
  const others = () => unfinishedSignOuts().filter((other) => other.id !== id);
  store([...others(), { id, key }]);
  const isMasterKey = key.startsWith(`${keyPrefixes.master}_`);
  try {
    await createApiClient({ key }).call(isMasterKey ? "deleteKey" : "endSession", { params: { id } });
  } catch (error) {
    const { status = 0, reason = "" } = error instanceof ApiProblem ? error : {};
    if (reason === "last_master_key") return reason;
    // 401 and 404: it has ended already.
    if (status !== 401 && reason !== "session_not_found" && reason !== "key_not_found") return "unreached";
  }
  store(others());
  return "done";
}

/** Whether an earlier release left a master key. The one made for the browser is then an unfinished sign-out. */
function leaveFormerSession(): boolean {
  const former = parsed(SignOut, localStorage.getItem(formerBrowserKey));
  if (former !== null) store([...unfinishedSignOuts(), former]);
  const wasSignedIn = former !== null || sessionStorage.getItem(formerTabKey) !== null;
  localStorage.removeItem(formerBrowserKey);
  sessionStorage.removeItem(formerTabKey);
  return wasSignedIn;
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
