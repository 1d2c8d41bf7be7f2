import type { components } from "./schema.ts";

/** The body of each error (RFC 9457). */
export type Problem = components["schemas"]["Problem"];

/** Statuses of redirects; browsers show 0 instead. */
const redirects = [0, 301, 302, 303, 307, 308];

/** An error that the server answered. `reason` is for programs, `message` for people. */
export class DevmeshProblem extends Error {
  override readonly name = "DevmeshProblem";
  readonly status: number;
  /** Stable word, such as `device_offline`; `docs/errors.md` lists them. Undefined if something else answered. */
  readonly reason: string | undefined;
  /** All that the server said; undefined if something else answered, such as a proxy. */
  readonly problem: Problem | undefined;

  constructor(status: number, problem: Problem | undefined) {
    const hint = redirects.includes(status) ? ", a redirect, which is not followed" : "";
    super(problem?.detail ?? `HTTP status ${status}${hint}`);
    this.status = status;
    this.reason = problem?.reason;
    this.problem = problem;
  }

  /** Reads the problem of a response that is no success. */
  static async of(response: Response): Promise<DevmeshProblem> {
    const isProblem = response.headers.get("content-type")?.startsWith("application/problem+json");
    const problem: Problem | undefined = isProblem ? await response.json().catch(() => undefined) : undefined;
    return new DevmeshProblem(response.status, problem);
  }
}
