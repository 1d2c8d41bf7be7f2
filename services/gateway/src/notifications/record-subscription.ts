import { type gatewayEvents, recordsWantedMs } from "@devmesh/contracts/gateway";
import { mesh } from "@devmesh/contracts/mesh";
import type { DataRecord } from "@devmesh/contracts/model/data-record";
import type { Bus } from "@devmesh/service-kit/bus";
import type { Clock } from "@devmesh/service-kit/clock";
import { type ActiveSubscription, type Publisher, subscribe } from "@devmesh/service-kit/events";

/** What hearing of records works with. */
export interface RecordHearingParts {
  readonly bus: Bus;
  readonly publisher: Publisher<typeof gatewayEvents>;
  readonly clock: Clock;
  /** Gets records as they are stored. */
  readonly stored: (records: readonly DataRecord[]) => void;
}

/** Hears of records while somebody wants them: `data` is told so again and again, and tells nothing otherwise. */
export class RecordHearing {
  readonly #parts: RecordHearingParts;
  #hearing: ActiveSubscription | null = null;
  #cancel: () => void = () => undefined;

  constructor(parts: RecordHearingParts) {
    this.#parts = parts;
  }

  /** Whether records are heard of. */
  get active(): boolean {
    return this.#hearing !== null;
  }

  start(): void {
    if (this.#hearing !== null) return;
    const { bus, stored } = this.#parts;
    const [, records] = mesh.gateway.subscribes;
    this.#hearing = subscribe(bus, records, { stored: (told) => stored(told.records) }, { mode: "each" });
    this.#say();
  }

  /** Tells `data` at once, which may not have heard it lately. */
  sayAgain(): void {
    if (this.#hearing !== null) this.#parts.publisher.live.records_wanted({});
  }

  async stop(): Promise<void> {
    const hearing = this.#hearing;
    this.#hearing = null;
    this.#cancel();
    await hearing?.stop();
  }

  #say(): void {
    this.#parts.publisher.live.records_wanted({});
    this.#cancel = this.#parts.clock.schedule(recordsWantedMs / 3, () => this.#say());
  }
}
