/** Limits how many callers run at a time; the others wait in order. Dispose of the result to release the slot. */
export function createSemaphore(slots: number): { acquire(): Promise<Disposable> } {
  let free = slots;
  const waiting: (() => void)[] = [];
  const release = () => {
    const next = waiting.shift();
    if (next === undefined) free++;
    else next();
  };
  return {
    async acquire() {
      if (free > 0) free--;
      else await new Promise<void>((resolve) => waiting.push(resolve));
      return { [Symbol.dispose]: release };
    },
  };
}
