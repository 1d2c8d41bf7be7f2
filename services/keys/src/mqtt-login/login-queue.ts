/** Logins decided at a time; they share a commit of the store. */
const atOnce = 100;
/** Limits of the two queues. */
const maxWaiting = 10_000;
const maxSuspect = 1_000;

/** A semaphore with two priorities, each with a bounded queue in memory. */
export function createLoginQueue() {
  const trusted: (() => void)[] = [];
  const suspects: (() => void)[] = [];
  let running = 0;

  function leave(): void {
    const next = trusted.shift() ?? suspects.shift();
    if (next === undefined) running--;
    else next();
  }

  return {
    /** Resolves with the function that releases the permit; null when too many wait. Suspect logins come last. */
    async enter(suspect: boolean): Promise<(() => void) | null> {
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
