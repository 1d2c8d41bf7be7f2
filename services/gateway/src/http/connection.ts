import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Clock } from "@devmesh/service-kit/clock";
import type { ConnectionSlot } from "./connection-limit.ts";

/**
 * Bytes of a body in chunks that are parsed at a time. What follows its end in the same ones is 57 requests at most,
 * whose parsing takes a third of a millisecond.
 */
const sliceBytes = 1024;

/**
 * How much a connection that ends still reads, in bytes and in milliseconds. Closed at once, it would be reset, and its
 * client might lose the last answer.
 */
const lingerBytes = 64 * 1024;
const lingerMs = 1_000;

const nothing = Buffer.alloc(0);
const endOfHead = Buffer.from("\r\n\r\n");

/** A request that was parsed and has not begun, or what is done in place of one. */
interface RequestTurn {
  readonly run: () => void;
  readonly request?: IncomingMessage;
  readonly response?: ServerResponse;
}

export interface ConnectionOptions {
  readonly socket: Socket;
  readonly slot: ConnectionSlot;
  readonly clock: Clock;
}

const unhurried = new WeakSet<IncomingMessage>();

/** Exempts the body of a request from the time in which requests must have arrived. */
export function keepsOwnTime(request: IncomingMessage): void {
  unhurried.add(request);
}

/**
 * The requests of one connection, one after the other. The next one begins when the answer before is written and the
 * event loop had a turn: requests that arrive together delay no other. Bytes that follow a request are parsed after
 * its answer.
 */
export class HttpConnection {
  readonly #socket: Socket;
  readonly #slot: ConnectionSlot;
  readonly #clock: Clock;
  readonly #parse: (bytes: Buffer) => void;
  readonly #destroySoon: () => void;
  /** Received and not parsed. */
  #held: Buffer | undefined;
  /** End of a head that was parsed in part. */
  #tail: Buffer = nothing;
  /** Bytes of the body of the last request that are not parsed; undefined without a declared length. */
  #bodyLeft: number | undefined;
  readonly #waiting: RequestTurn[] = [];
  #running: RequestTurn | undefined;
  /** The last request that was parsed, until it is answered. */
  #newest: IncomingMessage | undefined;
  /** Whether this, and not the reader of a body, has paused the socket. */
  #isPausing = false;
  /** Whether nothing more is parsed. */
  #isEnded = false;
  /** Bytes that are still dropped before the connection closes; undefined until it lingers. */
  #lingering: number | undefined;

  /** Takes the bytes of a connection that Node's server has just accepted. */
  constructor({ socket, slot, clock }: ConnectionOptions) {
    const [parse, ...others] = socket.listeners("data");
    if (parse === undefined || others.length > 0)
      throw new Error("Couldn't take over a connection: Node's HTTP server reads it in an unknown way.");
    this.#socket = socket;
    this.#slot = slot;
    this.#clock = clock;
    this.#parse = parse as (bytes: Buffer) => void;
    this.#destroySoon = socket.destroySoon.bind(socket);
    socket.off("data", this.#parse);
    socket.on("data", this.#receive).on("resume", this.#advance).once("close", this.#clear);
    socket.destroySoon = () => this.#close();
  }

  /** Lets a request wait for its turn. */
  add(request: IncomingMessage, response: ServerResponse, run: () => void): void {
    const length = Number(request.headers["content-length"]);
    this.#bodyLeft = Number.isSafeInteger(length) ? length : undefined;
    this.#newest = request;
    this.#waiting.push({ run, request, response });
  }

  /** Passes the connection on in its turn, with bytes that were received and not parsed. Nothing more is read here. */
  passOn(take: (rest: Buffer) => void): void {
    const rest = this.#held ?? nothing;
    this.#end();
    this.#socket.off("data", this.#receive).off("resume", this.#advance);
    this.#waiting.push({ run: () => take(rest) });
    this.#begin();
  }

  /**
   * Ends the connection, in its turn, with what `answer` returns. In the place of a request that is incomplete it comes
   * at once, unless that is answered already.
   */
  refuse(answer: () => string): void {
    if (this.#isEnded) return;
    this.#end();
    const run = () => {
      this.#socket.write(answer());
      this.#linger();
    };
    if (this.#newest?.complete !== false) this.#waiting.push({ run });
    else if (this.#newest !== this.#running?.request) this.#waiting.splice(-1, 1, { run });
    else if (this.#running.response?.headersSent) this.#socket.destroy();
    else run();
    this.#begin();
  }

  /** Whether an upload is under way, whose time another clock bounds. */
  get isUnhurried(): boolean {
    return this.#newest !== undefined && !this.#newest.complete && unhurried.has(this.#newest);
  }

  readonly #receive = (bytes: Buffer): void => {
    if (this.#lingering !== undefined) this.#drop(bytes.length);
    if (this.#isEnded) return;
    this.#held = this.#held === undefined ? bytes : Buffer.concat([this.#held, bytes]);
    this.#advance();
  };

  /** Parses what was received up to the end of a request, and begins the first one that waits. */
  readonly #advance = (): void => {
    while (this.#held !== undefined && !this.#isEnded && this.#mayParse()) {
      const hasHead = this.#waiting.length > 0;
      this.#parse(this.#slice(this.#held));
      // A body that arrives with its head is complete before its request begins.
      if (hasHead) this.#begin();
    }
    this.#begin();
  };

  #mayParse(): boolean {
    if (this.#newest?.complete) {
      this.#isPausing = true;
      this.#socket.pause();
      return false;
    }
    if (this.#isPausing) {
      this.#isPausing = false;
      this.#socket.resume();
    }
    return !this.#socket.isPaused() && !this.#socket.destroyed;
  }

  /** Takes the next bytes, so that at most one request begins in them unless they are of a body in chunks. */
  #slice(held: Buffer): Buffer {
    const isHead = this.#newest === undefined;
    const length = Math.max(1, isHead ? this.#headLength(held) : (this.#bodyLeft ?? chunkedLength(held)));
    const slice = held.subarray(0, length);
    if (!isHead && this.#bodyLeft !== undefined) this.#bodyLeft -= slice.length;
    this.#held = length < held.length ? held.subarray(length) : undefined;
    return slice;
  }

  /** Bytes up to the end of the next head; all where none ends in them. */
  #headLength(held: Buffer): number {
    const isPartial = this.#tail.length > 0;
    const bytes = isPartial ? Buffer.concat([this.#tail, held]) : held;
    const end = bytes.indexOf(endOfHead, isPartial ? 0 : beginOfHead(bytes));
    this.#tail = end < 0 ? Buffer.from(bytes.subarray(1 - endOfHead.length)) : nothing;
    return end < 0 ? held.length : end + endOfHead.length - (bytes.length - held.length);
  }

  #begin(): void {
    if (this.#running !== undefined) return;
    const turn = this.#waiting.shift();
    if (turn === undefined) return;
    this.#running = turn;
    this.#slot.take();
    turn.response?.once("close", () => setImmediate(this.#endTurn));
    turn.run();
  }

  readonly #endTurn = (): void => {
    if (this.#running?.request === this.#newest) this.#newest = undefined;
    this.#running = undefined;
    this.#advance();
    if (this.#running === undefined) this.#slot.rest();
  };

  #end(): void {
    this.#isEnded = true;
    this.#held = undefined;
  }

  readonly #clear = (): void => {
    this.#end();
    this.#waiting.length = 0;
  };

  /** Closes the connection after its last answer. */
  #close(): void {
    const isRead = this.#held === undefined && this.#newest?.complete !== false;
    this.#clear();
    if (isRead) this.#destroySoon();
    else this.#linger();
  }

  #linger(): void {
    if (this.#lingering !== undefined) return;
    this.#lingering = lingerBytes;
    this.#socket.end();
    this.#socket.resume();
    const cancel = this.#clock.schedule(lingerMs, () => this.#socket.destroy());
    this.#socket.once("close", cancel).once("end", () => this.#socket.destroy());
  }

  #drop(bytes: number): void {
    this.#lingering = (this.#lingering ?? 0) - bytes;
    if (this.#lingering < 0) this.#socket.destroy();
  }
}

/** Position after the line breaks that may precede a request (RFC 9112, 2.2). */
function beginOfHead(bytes: Buffer): number {
  let at = 0;
  while (bytes[at] === 0x0d || bytes[at] === 0x0a) at++;
  return at;
}

/** Bytes of a chunked body to parse next. They end with a head if one ends there: no later head is parsed in part. */
function chunkedLength(held: Buffer): number {
  const end = held.subarray(0, sliceBytes).lastIndexOf(endOfHead);
  return end < 0 ? sliceBytes : end + endOfHead.length;
}
