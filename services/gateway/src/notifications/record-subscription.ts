import { type gatewayEvents, recordsWantedMs } from "@devmesh/contracts/gateway";
import { mesh } from "@devmesh/contracts/mesh";
import type { DataRecord } from "@devmesh/contracts/model/data-record";
import type { Bus } from "@devmesh/service-kit/bus";
import type { Clock } from "@devmesh/service-kit/clock";
import type { Publisher } from "@devmesh/service-kit/events/publisher";
import { type ActiveSubscription, subscribe } from "@devmesh/service-kit/events/subscription";

export interface RecordSubscriptionOptions {
  readonly bus: Bus;
  readonly publisher: Publisher<typeof gatewayEvents>;
  readonly clock: Clock;
  readonly onStored: (records: readonly DataRecord[]) => void;
}

/** Subscribes to records as they are stored. `data` publishes them only while `records_wanted` is renewed. */
export class RecordSubscription {
  readonly #options: RecordSubscriptionOptions;
  #subscription: ActiveSubscription | null = null;
  #cancel: () => void = () => undefined;

  constructor(options: RecordSubscriptionOptions) {
    this.#options = options;
  }

  get active(): boolean {
    return this.#subscription !== null;
  }

  start(): void {
    if (this.active) return;
    const { bus, onStored } = this.#options;
    const [, records] = mesh.gateway.subscribes;
    const handlers = { stored: (event: { readonly records: DataRecord[] }) => onStored(event.records) };
    this.#subscription = subscribe(bus, records, handlers, { mode: "each" });
    this.#keepRenewing();
  }

  /** Publishes `records_wanted` now: `data` may have missed the last one. */
  renew(): void {
    this.#options.publisher.records_wanted({});
  }

  async stop(): Promise<void> {
    const subscription = this.#subscription;
    this.#subscription = null;
    this.#cancel();
    await subscription?.stop();
  }

  #keepRenewing(): void {
    this.renew();
    this.#cancel = this.#options.clock.schedule(recordsWantedMs / 3, () => this.#keepRenewing());
  }
}
