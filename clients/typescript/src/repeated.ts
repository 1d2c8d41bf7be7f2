import { DevmeshProblem } from "./problem.ts";
import { DevmeshUnreachable } from "./unreachable.ts";

/** Pauses before a request is repeated, in milliseconds: the first, then each doubled, and the longest. */
export const pauseMs = { first: 500, longest: 15_000 } as const;

/** Whether the request may succeed later: the server is away, busy or has an error. */
export function isPassing(error: unknown): boolean {
  if (error instanceof DevmeshProblem) return error.status >= 500 || error.status === 429;
  return error instanceof DevmeshUnreachable;
}

/** Resolves after a while, or once the signal fires. */
export async function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  if (signal?.aborted) return;
  await new Promise<void>((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal?.addEventListener("abort", end);
  });
}
