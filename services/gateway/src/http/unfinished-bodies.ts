import type { Clock } from "@devmesh/service-kit/clock";
import { RequestRefused } from "./gateway-errors.ts";

/** Least that a body counts, in bytes: its request and connection take memory before any of it has come. */
const leastBytes = 16 * 1024;

/** Limits of bodies that have not arrived whole. */
export interface UnfinishedBodiesOptions {
  /** Most bytes of one key. */
  readonly maxBytesOfKey: number;
  /** Most bytes of all keys. */
  readonly maxBytes: number;
  /** How long a body may not advance, in milliseconds. */
  readonly stallMs: number;
  readonly clock: Clock;
}

/** A body that is being received. */
export interface UnfinishedBody {
  /** Counts bytes that have arrived. */
  received(bytes: number): void;
  /** Counts the body no more; idempotent. */
  end(): void;
}

interface Share {
  readonly keyId: string;
  bytes: number;
  readonly bodies: Set<CountedBody>;
}

interface CountedBody {
  readonly share: Share;
  /** Ends the reading of the body with an error. */
  readonly refuse: (refusal: RequestRefused) => void;
  received: number;
  counted: number;
  cancelStall: () => void;
}

/**
 * Bounds the memory of bodies that have begun to arrive. A key beyond its share loses the body that grows; when the
 * whole is used up, the key that holds most loses its largest body, so that small bodies of other keys are still
 * received.
 */
export class UnfinishedBodies {
  readonly #options: UnfinishedBodiesOptions;
  readonly #shares = new Map<string, Share>();
  #bytes = 0;

  constructor(options: UnfinishedBodiesOptions) {
    this.#options = options;
  }

  /** Counts a body of a key. `refuse` is called at most once, also by this call. */
  begin(keyId: string, refuse: (refusal: RequestRefused) => void): UnfinishedBody {
    const share = this.#shares.get(keyId) ?? { keyId, bytes: 0, bodies: new Set() };
    this.#shares.set(keyId, share);
    const body: CountedBody = { share, refuse, received: 0, counted: 0, cancelStall: () => undefined };
    share.bodies.add(body);
    this.#count(body, 0);
    return { received: (bytes) => this.#count(body, bytes), end: () => this.#end(body) };
  }

  #count(body: CountedBody, bytes: number): void {
    const { share } = body;
    const { maxBytesOfKey, maxBytes, stallMs, clock } = this.#options;
    if (!share.bodies.has(body)) return;
    body.cancelStall();
    body.cancelStall = clock.schedule(stallMs, () => this.#refuse(body, stalled()));
    body.received += bytes;
    const more = Math.max(body.received, leastBytes) - body.counted;
    body.counted += more;
    share.bytes += more;
    this.#bytes += more;
    if (share.bytes > maxBytesOfKey) this.#refuse(body, tooMany());
    while (this.#bytes > maxBytes) this.#refuse(this.#heaviest() ?? body, tooMany());
  }

  #heaviest(): CountedBody | undefined {
    let most: Share | undefined;
    for (const share of this.#shares.values()) if (share.bytes > (most?.bytes ?? 0)) most = share;
    let largest: CountedBody | undefined;
    for (const body of most?.bodies ?? []) if (body.counted > (largest?.counted ?? 0)) largest = body;
    return largest;
  }

  #refuse(body: CountedBody, refusal: RequestRefused): void {
    this.#end(body);
    body.refuse(refusal);
  }

  #end(body: CountedBody): void {
    const { share, counted } = body;
    if (!share.bodies.delete(body)) return;
    body.cancelStall();
    share.bytes -= counted;
    this.#bytes -= counted;
    if (share.bodies.size === 0) this.#shares.delete(share.keyId);
  }
}

function tooMany(): RequestRefused {
  return new RequestRefused("too_many_bodies", { headers: { "Retry-After": "5" } });
}

/** Nobody may be at the other end any more, so the connection is closed. */
function stalled(): RequestRefused {
  return new RequestRefused("request_incomplete", { headers: { Connection: "close" } });
}
