/** Lets so many at a time; the others wait, in their order. */
export interface Turns {
  /** Resolves when it is the caller's turn, which it gives back by disposing. */
  take(): Promise<Disposable>;
}

/** Turns for `atATime`. */
export function createTurns(atATime: number): Turns {
  let free = atATime;
  const waiting: (() => void)[] = [];
  const giveBack = () => {
    const next = waiting.shift();
    if (next === undefined) free++;
    else next();
  };
  return {
    async take() {
      if (free > 0) free--;
      else await new Promise<void>((resolve) => waiting.push(resolve));
      return { [Symbol.dispose]: giveBack };
    },
  };
}
