import { keptChanges, MeshChange, type MeshChanges } from "@devmesh/contracts/model/mesh-change";
import type { Bus } from "@devmesh/service-kit/bus";
import type { Clock } from "@devmesh/service-kit/clock";
import { createHistoryStream, type HistoryStream } from "@devmesh/service-kit/events/history-stream";
import type { Logger } from "@devmesh/service-kit/logger";
import { belongTogether, combined, foldChanges } from "./fold-changes.ts";

/** How long changes are collected before they are written, in milliseconds. */
const writeMs = 1_000;
/** Attempts to write the rest at the end. */
const lastAttempts = 3;

export interface ChangeLogOptions {
  readonly bus: Bus;
  readonly clock: Clock;
  readonly log: Logger;
}

/**
 * The last changes that requests made, shared by all gateways. Each gateway keeps its own entries, as many as are
 * listed, and writes those that changed once a second: an entry is the newest message of its subject, so that a write
 * that fails is repeated.
 */
export class ChangeLog {
  readonly #options: ChangeLogOptions;
  readonly #stream: HistoryStream;
  /** Distinguishes the entries of this gateway from those of others. */
  readonly #id = crypto.randomUUID();
  readonly #entries = new Map<string, MeshChange>();
  readonly #unwritten = new Set<string>();
  #cancel: (() => void) | undefined;
  #writing: Promise<void> | undefined;
  #stopped = false;

  constructor(options: ChangeLogOptions) {
    this.#options = options;
    this.#stream = createHistoryStream(options.bus, "changes");
  }

  /** Adds a change; nothing waits for the broker. */
  add(change: MeshChange): void {
    const same = [...this.#entries].find(([, entry]) => belongTogether(entry, change));
    const [subject, entry] = same ?? [this.#freePlace(change.by.kind), undefined];
    this.#entries.set(subject, entry === undefined ? change : combined(entry, change));
    this.#unwritten.add(subject);
    this.#schedule();
  }

  /** What all gateways have written; throws `unavailable` without the broker. */
  async read(): Promise<MeshChanges> {
    const entries = (await this.#stream.read()).map((value) => MeshChange.safeParse(value).data);
    return foldChanges(
      [],
      entries.filter((entry) => entry !== undefined),
    );
  }

  /** Writes what waits. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#cancel?.();
    await this.#writing;
    for (let attempt = 0; attempt < lastAttempts && this.#unwritten.size > 0; attempt++) await this.#write();
  }

  /** A subject without an entry, else that of the oldest one of that kind of key. */
  #freePlace(kind: MeshChange["by"]["kind"]): string {
    const places = Array.from(
      { length: keptChanges[kind] },
      (_, nth) => `changes.${kind}.${this.#id}.${nth}`,
    );
    const ages = places.map((place) => Date.parse(this.#entries.get(place)?.at ?? "1970-01-01"));
    return places[ages.indexOf(Math.min(...ages))] ?? "";
  }

  #schedule(): void {
    if (this.#stopped || this.#cancel !== undefined || this.#unwritten.size === 0) return;
    this.#cancel = this.#options.clock.schedule(writeMs, () => {
      this.#writing = this.#write().then(() => {
        this.#cancel = undefined;
        this.#schedule();
      });
    });
  }

  async #write(): Promise<void> {
    for (const subject of [...this.#unwritten]) {
      this.#unwritten.delete(subject);
      try {
        await this.#stream.write({ subject, value: this.#entries.get(subject) });
      } catch (error) {
        this.#options.log.debug({ err: error }, "the last changes are not written yet");
        this.#unwritten.add(subject);
        return;
      }
    }
  }
}
