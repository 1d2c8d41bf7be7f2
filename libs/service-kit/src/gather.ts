/** How items are gathered into calls. */
export interface GatheringOptions<Item, Answer> {
  /** Answers items in their order; what it answers too few for is asked again. Rejects for all of them. */
  readonly ask: (items: readonly Item[]) => Promise<readonly Answer[]>;
  /** Items of a call. */
  readonly maxItems: number;
  /** Bytes of the items of a call; a single item may have more. Default: no bound. */
  readonly maxBytes?: number;
  readonly sizeOf?: (item: Item) => number;
  /** Calls at one time; what comes meanwhile waits, and goes together. */
  readonly maxCalls: number;
}

interface Asked<Item, Answer> {
  readonly item: Item;
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Asks for single items by calls that carry many: those of one turn of the event loop, and those that came while the
 * calls before were under way. Callers bound what waits.
 */
export function gather<Item, Answer>(
  options: GatheringOptions<Item, Answer>,
): (item: Item) => Promise<Answer> {
  const { ask, maxItems, maxBytes = Number.POSITIVE_INFINITY, sizeOf = () => 0, maxCalls } = options;
  let waiting: Asked<Item, Answer>[] = [];
  let calls = 0;

  function next(): Asked<Item, Answer>[] {
    let bytes = 0;
    let count = 0;
    for (const { item } of waiting) {
      bytes += sizeOf(item);
      if (count === maxItems || (count > 0 && bytes > maxBytes)) break;
      count++;
    }
    return waiting.splice(0, count);
  }

  async function call(asked: readonly Asked<Item, Answer>[]): Promise<void> {
    calls++;
    try {
      const answers = await ask(asked.map(({ item }) => item));
      if (answers.length === 0) throw new Error("nothing was answered");
      for (const [at, answer] of answers.entries()) asked[at]?.resolve(answer);
      waiting = [...asked.slice(answers.length), ...waiting];
    } catch (error) {
      for (const { reject } of asked) reject(error);
    } finally {
      calls--;
      start();
    }
  }

  function start(): void {
    while (calls < maxCalls && waiting.length > 0) void call(next());
  }

  return (item) =>
    new Promise((resolve, reject) => {
      if (waiting.length === 0) setImmediate(start);
      waiting.push({ item, resolve, reject });
    });
}
