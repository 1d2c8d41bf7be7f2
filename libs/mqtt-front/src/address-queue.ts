import { addressGroup } from "./address-group.ts";

/**
 * Lets so many tasks run at a time; the others wait, and addresses take turns. A flood from one address makes its own
 * tasks wait, and no other's.
 */
export class AddressQueue {
  #running = 0;
  readonly #permits: number;
  /** By address; the one whose turn is next comes first. */
  readonly #waiting = new Map<string, (() => void)[]>();

  constructor(permits: number) {
    this.#permits = permits;
  }

  /** Runs a task of an address when its turn comes. */
  async run<T>(address: string, task: () => Promise<T>): Promise<T> {
    if (this.#running >= this.#permits)
      await new Promise<void>((resolve) => this.#wait(addressGroup(address), resolve));
    else this.#running++;
    try {
      return await task();
    } finally {
      this.#startNext();
    }
  }

  #wait(group: string, start: () => void): void {
    const ofAddress = this.#waiting.get(group);
    if (ofAddress === undefined) this.#waiting.set(group, [start]);
    else ofAddress.push(start);
  }

  /** Passes the permit on to the next address, or gives it back. */
  #startNext(): void {
    const [turn] = this.#waiting;
    if (turn === undefined) {
      this.#running--;
      return;
    }
    const [group, starts] = turn;
    this.#waiting.delete(group);
    const start = starts.shift();
    if (starts.length > 0) this.#waiting.set(group, starts);
    start?.();
  }
}
