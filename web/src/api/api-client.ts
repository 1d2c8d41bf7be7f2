import type { Firmware } from "@devmesh/contracts/model/firmware";
import { api, type Operation } from "@devmesh/contracts/rest/api";
import type { RouteDeclaration } from "@devmesh/contracts/rest/route";
import { ApiProblem, UnexpectedAnswer, Unreachable } from "./api-problem.ts";
import type { CallResult, RouteInput } from "./route-types.ts";
import { serverAnswers } from "./server-answers.ts";
import { noteServerTime } from "./server-clock.ts";
import { type ContentUpload, upload } from "./upload.ts";

/** Options of {@link createApiClient}. */
export interface ApiClientOptions {
  /** Origin of the gateway, if not the page's own. */
  readonly origin?: string;
  /** The key in the `Authorization` of each request, except those for which `askMasterKey` is called. */
  readonly key: string;
  /** The session of the key; null or left out for a key of another kind. */
  readonly session?: SessionIds | null;
  /** Returns a master key for a request that no session may send; without it they are sent with `key`. */
  readonly askMasterKey?: () => Promise<string>;
  /** Called with a key that is refused (401). */
  readonly onRefusedKey?: (key: string) => void;
}

/** Ids of a session and of the master key that began it. */
interface SessionIds {
  readonly id: string;
  readonly master_key_id: string;
}

/** A response with its headers: some views need `Link` or `ETag`. */
interface Answered<T> {
  readonly body: T;
  readonly headers: Headers;
}

/** Calls the public API by operation id; the routes of the contract type the input and check the responses. */
export interface ApiClient {
  readonly session: SessionIds | null;
  /**
   * Returns the parsed body of a success. Rejects with an {@link ApiProblem}, {@link Unreachable} or {@link
   * UnexpectedAnswer}; an abort rejects with the signal's reason.
   */
  call<O extends Operation>(operation: O, input: RouteInput<O>): Promise<CallResult<O>>;
  /** As `call`, with the headers of the response. */
  exchange<O extends Operation>(operation: O, input: RouteInput<O>): Promise<Answered<CallResult<O>>>;
  /** Sends any request with the session's key, for streams. Rejects as `call` does; the caller reads the body. */
  open(pathAndQuery: string, init?: RequestInit): Promise<Response>;
  /** Whether the server answers at all, to a question without a key. */
  answers(signal: AbortSignal): Promise<boolean>;
  /** Sends the content of firmware. Rejects as `call` does. */
  upload(content: ContentUpload): Promise<Firmware>;
}

/** Creates a client for one key. */
export function createApiClient(options: ApiClientOptions): ApiClient {
  const { origin = "", key: ownKey, session = null, askMasterKey, onRefusedKey } = options;

  async function open(pathAndQuery: string, init: RequestInit = {}, key = ownKey): Promise<Response> {
    const headers = new Headers(init.headers);
    headers.set("Authorization", `Bearer ${key}`);
    let response: Response;
    try {
      response = await fetch(`${origin}${pathAndQuery}`, { ...init, headers, cache: "no-store" });
    } catch (cause) {
      init.signal?.throwIfAborted();
      throw new Unreachable(cause);
    }
    noteServerTime(response.headers);
    if (response.ok) return response;
    const problem = await ApiProblem.from(response);
    if (problem.status === 401) onRefusedKey?.(key);
    throw problem;
  }

  async function exchange<O extends Operation>(
    operation: O,
    input: RouteInput<O>,
  ): Promise<Answered<CallResult<O>>> {
    const route: RouteDeclaration = api[operation];
    const { params, query, body, signal, headers, asMaster }: LooseInput = input;
    const needsMaster = asMaster === true || !admitsSession(route);
    const key = needsMaster && askMasterKey !== undefined ? await askMasterKey() : ownKey;
    const init = {
      method: route.method.toUpperCase(),
      headers: { ...headers, ...(body !== undefined && { "Content-Type": "application/json" }) },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      ...(signal !== undefined && { signal }),
    };
    const response = await open(pathOf(route, params) + queryOf(query), init, key);
    return {
      body: (await parsedBody(operation, route, response, signal)) as CallResult<O>,
      headers: response.headers,
    };
  }

  return {
    session,
    open: (pathAndQuery, init) => open(pathAndQuery, init),
    exchange,
    answers: (signal) => serverAnswers(origin, signal),
    call: async (operation, input) => (await exchange(operation, input)).body,
    upload: (content) =>
      upload(`${origin}${pathOf(api.uploadFirmware, { id: content.id })}`, ownKey, content),
  };
}

/** A {@link RouteInput} of any operation. */
interface LooseInput {
  readonly params?: Readonly<Record<string, unknown>>;
  readonly query?: Readonly<Record<string, unknown>>;
  readonly body?: unknown;
  readonly signal?: AbortSignal;
  readonly headers?: Readonly<Record<string, string>>;
  readonly asMaster?: true;
}

/** Whether a session may send the request: none may where the answer has a secret. */
function admitsSession({ auth }: RouteDeclaration): boolean {
  return auth === null || auth.includes("session");
}

function pathOf({ path }: RouteDeclaration, params: LooseInput["params"] = {}): string {
  return path.replace(/:(\w+)/g, (_match, name: string) => encodeURIComponent(String(params[name])));
}

function queryOf(query: LooseInput["query"] = {}): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined);
  if (given.length === 0) return "";
  return `?${new URLSearchParams(given.map(([name, value]) => [name, textOf(value)]))}`;
}

/** A value of a query as text: lists with commas, a condition as JSON. */
function textOf(value: unknown): string {
  return typeof value === "object" && !Array.isArray(value) ? JSON.stringify(value) : String(value);
}

async function parsedBody(
  operation: Operation,
  route: RouteDeclaration,
  response: Response,
  signal: AbortSignal | undefined,
): Promise<unknown> {
  const schema = route.answers[response.status]?.json;
  if (schema === undefined) {
    await response.body?.cancel();
    return undefined;
  }
  try {
    return schema.parse(await response.json());
  } catch (cause) {
    signal?.throwIfAborted();
    throw new UnexpectedAnswer(operation, cause);
  }
}
