import type { Violation } from "@devmesh/contracts/model/violation";
import { Problem } from "@devmesh/contracts/rest/problem";

/** An error response (RFC 9457; api.md, Conventions). */
export class ApiProblem extends Error {
  override readonly name = "ApiProblem";
  /** The HTTP status. */
  readonly status: number;
  /** Stable snake_case word; `unreadable` if the response is not from the gateway. */
  readonly reason: string;
  /** Id of the request in logs; null if there is none. */
  readonly requestId: string | null;
  /** The errors in a request, with a JSON pointer each. */
  readonly errors: readonly Violation[];
  /** The code of a device's error, else the HTTP status. */
  readonly code: number;
  /** The delay before a retry that the gateway asks for, in milliseconds; null for none. */
  readonly retryAfterMs: number | null;

  constructor(
    problem: Pick<ApiProblem, "status" | "reason" | "requestId" | "code"> & {
      readonly detail: string;
      readonly errors?: readonly Violation[] | undefined;
      readonly retryAfterMs?: number | null;
    },
  ) {
    super(problem.detail);
    this.status = problem.status;
    this.reason = problem.reason;
    this.requestId = problem.requestId;
    this.errors = problem.errors ?? [];
    this.code = problem.code;
    this.retryAfterMs = problem.retryAfterMs ?? null;
  }

  /** Reads the problem of an error response. */
  static async from(response: Response): Promise<ApiProblem> {
    const { status, headers } = response;
    const { data } = Problem.safeParse(await response.json().catch(() => null));
    return new ApiProblem({
      status,
      reason: "unreadable",
      detail: `The server answered ${status} without a reason.`,
      code: data?.error.code ?? status,
      ...data,
      ...(data?.service !== undefined && { detail: absenceText(data.service, status, data.detail) }),
      requestId: data?.request_id ?? headers.get("X-Request-Id"),
      retryAfterMs: waitIn(headers),
    });
  }
}

/** Why a service did not answer; the sentences of the gateway are about any service. */
function absenceText(service: string, status: number, detail: string): string {
  if (status === 504) return `The service ${service} gave no answer in time.`;
  return status === 503 ? `The service ${service} cannot be reached, or cannot serve now.` : detail;
}

/** `Retry-After` in seconds, as the gateway sends it. */
function waitIn(headers: Headers): number | null {
  const seconds = headers.get("Retry-After") ?? "";
  return /^\d{1,6}$/.test(seconds) ? Number(seconds) * 1_000 : null;
}

/** There was no response: the network or the server is down. `cause` is the browser's error. */
export class Unreachable extends Error {
  override readonly name = "Unreachable";

  constructor(cause: unknown) {
    super("The server cannot be reached.", { cause });
  }
}

/** The user gave no master key for a request that needs one. */
export class NoMasterKey extends Error {
  override readonly name = "NoMasterKey";

  constructor() {
    super("A session cannot read or make secrets: this needs a master key.");
  }
}

/** Whether the same request may succeed later. */
export function mayPass(error: Error): boolean {
  if (error instanceof NoMasterKey) return false;
  return !(error instanceof ApiProblem) || error.status >= 500 || error.status === 429;
}

/** A response that does not match the contract: the server has another release. `cause` has the difference. */
export class UnexpectedAnswer extends Error {
  override readonly name = "UnexpectedAnswer";

  constructor(operation: string, cause: unknown) {
    super(`The answer to ${operation} has a form that this dashboard does not know: reload the page.`, {
      cause,
    });
  }
}
