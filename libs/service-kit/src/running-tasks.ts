/** Work under way that a shutdown waits for. */
export class RunningTasks {
  readonly #tasks = new Set<Promise<void>>();

  /** Counts a task, which must not reject, until it ends. */
  add(task: Promise<void>): void {
    this.#tasks.add(task);
    void task.finally(() => this.#tasks.delete(task));
  }

  get size(): number {
    return this.#tasks.size;
  }

  /** Resolves when no task runs any more. */
  async settled(): Promise<void> {
    while (this.#tasks.size > 0) await Promise.all([...this.#tasks]);
  }
}
