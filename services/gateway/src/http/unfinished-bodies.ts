import type { Clock } from "@devmesh/service-kit/clock";
import { RequestRefused } from "./gateway-errors.ts";

/** Least that a body counts, in bytes, for the memory of its request and connection. */
const leastBytes = 16 * 1024;

export interface UnfinishedBodiesOptions {
  readonly maxBytesPerKey: number;
  readonly maxBytes: number;
  /** Longest time without progress of a body, in milliseconds. */
  readonly stallMs: number;
  /** Longest time of a body, in milliseconds. */
  readonly longestMs: number;
  readonly clock: Clock;
}

export interface UnfinishedBody {
  received(bytes: number): void;
  /** Stops counting the body; idempotent. */
  end(): void;
}

interface Share {
  readonly keyId: string;
  bytes: number;
  readonly bodies: Set<CountedBody>;
}

interface CountedBody {
  readonly share: Share;
  readonly refuse: (refusal: RequestRefused) => void;
  received: number;
  counted: number;
  cancelStall: () => void;
  readonly cancelEnd: () => void;
}

/**
 * Bounds the memory of incomplete bodies. A key over its limit loses the body that grows; over the total limit, the key
 * that holds most loses its largest body, so that small bodies of other keys are still received.
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
    const { longestMs, clock } = this.#options;
    const body: CountedBody = {
      share,
      refuse,
      received: 0,
      counted: 0,
      cancelStall: () => undefined,
      cancelEnd: clock.schedule(longestMs, () => this.#refuse(body, stalled())),
    };
    share.bodies.add(body);
    this.#count(body, 0);
    return { received: (bytes) => this.#count(body, bytes), end: () => this.#end(body) };
  }

  #count(body: CountedBody, bytes: number): void {
    const { share } = body;
    const { maxBytesPerKey, maxBytes, stallMs, clock } = this.#options;
    if (!share.bodies.has(body)) return;
    body.cancelStall();
    body.cancelStall = clock.schedule(stallMs, () => this.#refuse(body, stalled()));
    body.received += bytes;
    const more = Math.max(body.received, leastBytes) - body.counted;
    body.counted += more;
    share.bytes += more;
    this.#bytes += more;
    if (share.bytes > maxBytesPerKey) this.#refuse(body, tooMany());
    while (this.#bytes > maxBytes) this.#refuse(this.#largest() ?? body, tooMany());
  }

  #largest(): CountedBody | undefined {
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
    body.cancelEnd();
    share.bytes -= counted;
    this.#bytes -= counted;
    if (share.bodies.size === 0) this.#shares.delete(share.keyId);
  }
}

function tooMany(): RequestRefused {
  return new RequestRefused("too_many_bodies", { headers: { "Retry-After": "5" } });
}

function stalled(): RequestRefused {
  return new RequestRefused("request_incomplete");
}
