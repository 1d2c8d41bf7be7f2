import { type MeshChange, MeshChanges } from "@devmesh/contracts/model/mesh-change";
import type { Bus } from "@devmesh/service-kit/bus";
import type { Clock } from "@devmesh/service-kit/clock";
import { readStoredHistory, replaceStoredHistory } from "@devmesh/service-kit/history-stream";
import type { Logger } from "@devmesh/service-kit/logger";
import { foldChanges } from "./fold-changes.ts";

/** How long changes are collected before they are written, in milliseconds. */
const writeMs = 1_000;
/** Attempts to write the rest at the end: another gateway may write at the same time. */
const lastAttempts = 3;

export interface ChangeLogOptions {
  readonly bus: Bus;
  readonly clock: Clock;
  readonly log: Logger;
}

/**
 * The last changes that requests made, shared by all gateways: one message of the broker, some 10 KB. Each gateway
 * collects its own, bounded as the whole, and adds them once a second; a write that fails is tried again with the next.
 */
export class ChangeLog {
  readonly #options: ChangeLogOptions;
  #waiting: MeshChanges = [];
  #cancel: (() => void) | undefined;
  #writing: Promise<void> | undefined;
  #stopped = false;

  constructor(options: ChangeLogOptions) {
    this.#options = options;
  }

  /** Adds a change; nothing waits for the broker. */
  add(change: MeshChange): void {
    this.#waiting = foldChanges(this.#waiting, [change]);
    this.#schedule();
  }

  /** What all gateways have written; throws `unavailable` without the broker. */
  async read(): Promise<MeshChanges> {
    return (await readStoredHistory(this.#options.bus, "changes", MeshChanges)).value;
  }

  /** Writes what waits. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#cancel?.();
    await this.#writing;
    for (let attempt = 0; attempt < lastAttempts && this.#waiting.length > 0; attempt++) await this.#write();
  }

  #schedule(): void {
    if (this.#stopped || this.#cancel !== undefined || this.#waiting.length === 0) return;
    this.#cancel = this.#options.clock.schedule(writeMs, () => {
      this.#writing = this.#write().then(() => {
        this.#cancel = undefined;
        this.#schedule();
      });
    });
  }

  async #write(): Promise<void> {
    const { bus, log } = this.#options;
    const taken = this.#waiting;
    this.#waiting = [];
    try {
      const { value, sequence } = await readStoredHistory(bus, "changes", MeshChanges);
      await replaceStoredHistory(bus, "changes", { value: foldChanges(value, taken), sequence });
    } catch (error) {
      log.debug({ err: error }, "the last changes are not written yet");
      this.#waiting = foldChanges(taken, this.#waiting);
    }
  }
}
