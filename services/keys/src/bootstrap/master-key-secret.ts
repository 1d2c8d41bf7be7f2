import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { createSecret } from "../credentials/secret.ts";
import type { BootstrapEnv } from "./env.ts";

/** The member of the Secret that holds the key. */
const member = "MASTER_KEY";
const timeoutMs = 10_000;

/** The rest of a Secret is written back unchanged. */
const Secret = z.looseObject({ data: z.record(z.string(), z.string()).nullish() });

interface SecretResource {
  readonly url: string;
  readonly token: string;
}

/**
 * Writes a new master key into a Secret of Kubernetes that has none.
 * @throws Error with one sentence that holds no secret
 */
export async function ensureMasterKeySecret(env: BootstrapEnv): Promise<"made" | "present"> {
  const resource = await locate(env);
  const answer = await ask(resource, "GET");
  const secret = Secret.safeParse(await answer.json());
  if (!secret.success) throw new Error("the API server did not return a Secret");
  if (secret.data.data?.[member]) return "present";
  const data = { ...secret.data.data, [member]: Buffer.from(createSecret("master")).toString("base64") };
  // It has the resource version that was read, so that a key written meanwhile is not replaced.
  const written = await ask(resource, "PUT", { ...secret.data, data });
  if (written.status !== 409) return "made";
  throw new Error("the Secret was changed by another writer at the same time");
}

async function locate(env: BootstrapEnv): Promise<SecretResource> {
  const read = async (name: string) => (await readFile(join(env.SERVICE_ACCOUNT_DIR, name), "utf8")).trim();
  const namespace = await read("namespace");
  const path = `/api/v1/namespaces/${encodeURIComponent(namespace)}/secrets/${env.MASTER_KEY_SECRET}`;
  return { url: new URL(path, env.KUBERNETES_API_URL).href, token: await read("token") };
}

async function ask(
  { url, token }: SecretResource,
  method: "GET" | "PUT",
  body?: Record<string, unknown>,
): Promise<Response> {
  const response = await fetch(url, {
    method,
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    redirect: "error",
    signal: AbortSignal.timeout(timeoutMs),
  }).catch((cause: unknown) => {
    throw new Error("the API server cannot be reached", { cause });
  });
  if (response.ok || response.status === 409) return response;
  // Its body may repeat the Secret.
  throw new Error(`the API server answered ${response.status} to a ${method} of the Secret`);
}
