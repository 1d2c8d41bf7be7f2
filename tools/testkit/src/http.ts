/** An answer of the REST API, read to its end. */
export interface HttpAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** The body as JSON; undefined where it is none. */
  // biome-ignore lint/suspicious/noExplicitAny: a test looks into answers of every shape, and checks them.
  readonly json: any;
}

/** How a request is made. */
export interface HttpRequest {
  readonly method?: string;
  /** Sent as JSON, unless it is text or bytes already. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A client of the REST API with one key in the Authorization header. */
export interface HttpClient {
  (path: string, request?: HttpRequest): Promise<HttpAnswer>;
  /** This client with another key, or none. */
  as(key: string | null): HttpClient;
}

/** Longest wait for an answer, in milliseconds: the longest RPC and a margin. */
const ANSWER_MS = 75_000;

/** Makes a client of the API at `baseUrl`; paths begin with a slash. Only a lost connection throws, no status does. */
export function httpClient(baseUrl: string, key: string | null): HttpClient {
  const ask = async (path: string, { method, body, headers }: HttpRequest = {}): Promise<HttpAnswer> => {
    const response = await fetch(baseUrl + path, {
      method: method ?? (body === undefined ? "GET" : "POST"),
      headers: {
        ...(key === null ? {} : { authorization: `Bearer ${key}` }),
        ...(body === undefined ? {} : { "content-type": typeOf(body) }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: isSentAsIs(body) ? body : JSON.stringify(body) }),
      signal: AbortSignal.timeout(ANSWER_MS),
    });
    const text = await response.text();
    return { status: response.status, headers: response.headers, text, json: jsonOf(text) };
  };
  return Object.assign(ask, { as: (other: string | null) => httpClient(baseUrl, other) });
}

function isSentAsIs(body: unknown): body is string | Uint8Array<ArrayBuffer> {
  return typeof body === "string" || body instanceof Uint8Array;
}

function typeOf(body: unknown): string {
  return body instanceof Uint8Array ? "application/octet-stream" : "application/json";
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
