import type { SwaggerRequest } from "swagger-ui-dist/swagger-ui-es-bundle.js";
import type { ApiClient } from "../../api/api-client.ts";

/** Maximum size of a shown response body, in bytes. */
const maxBodyBytes = 200_000;

/** Time after which a response that does not end is cut, in milliseconds: the streams of events never end. */
const maxDurationMs = 10_000;

/** Dependencies of {@link prepareRequest}. */
interface TryOptions {
  readonly api: Pick<ApiClient, "key">;
  /** Origin of the API; only requests to it get the key. */
  readonly origin: string;
  /** Asks the user before a request that destroys something. */
  readonly confirm: (description: string) => Promise<boolean>;
}

/** Adds the key to a request of the reference and limits its response. Rejects if the user does not confirm it. */
export async function prepareRequest(
  request: SwaggerRequest,
  { api, origin, confirm }: TryOptions,
): Promise<SwaggerRequest> {
  const { pathname, origin: target } = new URL(request.url, origin);
  if (target !== origin) throw new Error("the reference sends requests only to its own server");
  const method = request.method.toUpperCase();
  if (isDestructive(method, pathname) && !(await confirm(`${method} ${pathname}`)))
    throw new Error("the request was not sent");
  request.headers.Authorization = `Bearer ${api.key}`;
  request.userFetch = fetchLimited;
  return request;
}

/** Deletions and rotations of secrets cannot be undone. */
function isDestructive(method: string, pathname: string): boolean {
  return method === "DELETE" || (method === "POST" && /\/devices\/[^/]+\/(token|public_key)$/.test(pathname));
}

/** `fetch` whose response ends after a maximum of time and bytes, so that a stream of events can be shown. */
export async function fetchLimited(
  url: string,
  init: RequestInit,
  durationMs: number = maxDurationMs,
): Promise<Response> {
  const ending = new AbortController();
  const response = await fetch(url, { ...init, cache: "no-store", signal: ending.signal });
  const timer = setTimeout(() => ending.abort(), durationMs);
  const chunks: Uint8Array<ArrayBuffer>[] = [];
  let size = 0;
  try {
    const reader = response.body?.getReader();
    while (reader !== undefined && size < maxBodyBytes) {
      const { done, value } = await reader.read();
      if (done) break;
      size += value.byteLength;
      chunks.push(value);
    }
  } catch (error) {
    if (!ending.signal.aborted) throw error;
  } finally {
    clearTimeout(timer);
    ending.abort();
  }
  const { status, statusText, headers } = response;
  const hasBody = ![101, 204, 205, 304].includes(status);
  return new Response(hasBody ? new Blob(chunks).slice(0, maxBodyBytes) : null, {
    status,
    statusText,
    headers,
  });
}
