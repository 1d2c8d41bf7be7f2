import { Problem } from "@devmesh/contracts/rest/problem";

/** An answer that says what went wrong (RFC 9457; api.md, Conventions). */
export class ApiProblem extends Error {
  override readonly name = "ApiProblem";
  /** The HTTP status. */
  readonly status: number;
  /** Stable snake_case word; `unreadable` when something other than the gateway answered. */
  readonly reason: string;
  /** To be quoted when asking somebody; null when there is none. */
  readonly requestId: string | null;
  /** Each thing wrong in a request, with a JSON pointer to it. */
  readonly errors: readonly { readonly pointer: string; readonly detail: string }[];
  /** The device's own code where a device answered an error, else the HTTP status. */
  readonly code: number;
  /** How long the gateway asks to wait before another try, in milliseconds; null where it does not. */
  readonly retryAfterMs: number | null;

  constructor(problem: {
    readonly status: number;
    readonly reason: string;
    readonly detail: string;
    readonly requestId: string | null;
    readonly errors: readonly { readonly pointer: string; readonly detail: string }[];
    readonly code: number;
    readonly retryAfterMs?: number | null;
  }) {
    super(problem.detail);
    this.status = problem.status;
    this.reason = problem.reason;
    this.requestId = problem.requestId;
    this.errors = problem.errors;
    this.code = problem.code;
    this.retryAfterMs = problem.retryAfterMs ?? null;
  }

  /** Reads the problem out of an answer that is not a success. */
  static async from(response: Response): Promise<ApiProblem> {
    const body: unknown = await response.json().catch(() => null);
    const parsed = Problem.safeParse(body);
    const retryAfterMs = waitIn(response.headers);
    if (parsed.success) {
      const { status, reason, detail, request_id, errors = [], error } = parsed.data;
      return new ApiProblem({
        status,
        reason,
        detail,
        requestId: request_id,
        errors,
        code: error.code,
        retryAfterMs,
      });
    }
    return new ApiProblem({
      status: response.status,
      reason: "unreadable",
      detail: `The server answered ${response.status} without saying why.`,
      requestId: response.headers.get("X-Request-Id"),
      errors: [],
      code: response.status,
      retryAfterMs,
    });
  }
}

/** `Retry-After` in its form of seconds, which is the one that the gateway sends. */
function waitIn(headers: Headers): number | null {
  const seconds = headers.get("Retry-After") ?? "";
  return /^\d{1,6}$/.test(seconds) ? Number(seconds) * 1_000 : null;
}

/** No answer came: the network or the server is away. `cause` is what the browser said. */
export class Unreachable extends Error {
  override readonly name = "Unreachable";

  constructor(cause: unknown) {
    super("The server cannot be reached.", { cause });
  }
}

/** An answer that is not what its contract says: the server is of another release. `cause` says what differs. */
export class UnexpectedAnswer extends Error {
  override readonly name = "UnexpectedAnswer";

  constructor(operation: string, cause: unknown) {
    super(`The answer to ${operation} is not of the form that this dashboard knows; reload the page.`, {
      cause,
    });
  }
}
