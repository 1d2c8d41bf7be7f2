import type { ApiClient } from "../api/api-client.ts";
import { Unreachable } from "../api/api-problem.ts";
import type { TriedRequest } from "./tried-request.ts";

/** An answer, as far as it has come. */
export interface TriedAnswer {
  readonly status: number;
  readonly statusText: string;
  readonly headers: Headers;
  readonly body: string;
  /** The server sent more than is held. */
  readonly cut: boolean;
  /** All has come that will. */
  readonly ended: boolean;
  /** From the sending until now, in milliseconds; of one that has ended, until its end. */
  readonly tookMs: number;
}

/** Most of a body that is held, in characters; a page with more of it would be slow. */
export const maxBodyLength = 200_000;

/** What a request is sent with. */
interface SendOptions {
  /** Whose key goes along, in a header. */
  readonly api: Pick<ApiClient, "origin" | "key">;
  /** Called with the answer when it begins, as it goes on, and when it has ended. */
  readonly onAnswer: (answer: TriedAnswer) => void;
  /** Ends it; what has come stays. */
  readonly signal: AbortSignal;
}

/** Sends a request and tells its answer whatever its status. Rejects with {@link Unreachable}; resolves when `signal` fires. */
export async function sendRequest(
  request: TriedRequest,
  { api, onAnswer, signal }: SendOptions,
): Promise<void> {
  const headers = new Headers(request.headers);
  if (request.needsKey) headers.set("Authorization", `Bearer ${api.key}`);
  const begun = performance.now();
  let tell: ((ended: boolean) => void) | null = null;
  try {
    const response = await fetch(`${api.origin}${request.address}`, {
      method: request.method,
      headers,
      body: request.body,
      cache: "no-store",
      signal,
    });
    let body = "";
    let cut = false;
    tell = (ended) => {
      const { status, statusText } = response;
      const tookMs = performance.now() - begun;
      onAnswer({ status, statusText, headers: response.headers, body, cut, ended, tookMs });
    };
    tell(false);
    for await (const text of textOf(response.body)) {
      body += text;
      cut = body.length > maxBodyLength;
      if (cut) {
        body = body.slice(0, maxBodyLength);
        break;
      }
      tell(false);
    }
    tell(true);
  } catch (cause) {
    if (!signal.aborted) throw new Unreachable(cause);
    tell?.(true);
  }
}

/** The body as text, piece by piece; it is cancelled when it is not read to its end. */
async function* textOf(body: ReadableStream<Uint8Array> | null): AsyncGenerator<string, void, undefined> {
  if (body === null) return;
  const reader = body
    .pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>)
    .getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield value;
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}
