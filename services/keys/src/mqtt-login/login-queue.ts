/** Logins that are decided at once; those of one moment share a commit of the store. */
const atOnce = 100;
/** Logins that wait for their turn, and of those from where many have just failed. */
const maxWaiting = 10_000;
const maxSuspect = 1_000;

/** Bounds the logins that are decided at once; the others wait. */
export interface LoginQueue {
  /**
   * Resolves when it is this login's turn, with the function that ends it, or with null when too many wait. A suspect
   * login waits for all that are not.
   */
  enter(suspect: boolean): Promise<(() => void) | null>;
}

/** A queue in the memory of this process. */
export function createLoginQueue(): LoginQueue {
  const trusted: (() => void)[] = [];
  const suspects: (() => void)[] = [];
  let running = 0;

  function leave(): void {
    const next = trusted.shift() ?? suspects.shift();
    if (next === undefined) running--;
    else next();
  }

  return {
    async enter(suspect) {
      if (running < atOnce) {
        running++;
        return leave;
      }
      const [waiting, limit] = suspect ? [suspects, maxSuspect] : [trusted, maxWaiting];
      if (waiting.length >= limit) return null;
      await new Promise<void>((resolve) => waiting.push(resolve));
      return leave;
    },
  };
}
