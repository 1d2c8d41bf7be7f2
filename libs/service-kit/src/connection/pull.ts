import type { Msg, MsgHdrs } from "@nats-io/nats-core";
import { createInbox, nanos, nuid } from "@nats-io/nats-core";
import type { Bus } from "./bus.ts";
import { natsConnection } from "./nats-connection.ts";

/** A message of a stream, delivered to a consumer and, where that wants it, not acknowledged yet. */
export interface PulledMessage {
  readonly subject: string;
  readonly payload: Uint8Array;
  readonly headers: MsgHdrs | undefined;
  /** Sequence in the stream. */
  readonly sequence: number;
  /** Counts what the consumer delivered; one that is missing did not arrive. */
  readonly deliverySequence: number;
  /** 1 at the first delivery. */
  readonly deliveries: number;
  /** When the stream stored it. */
  readonly storedAt: Date;
  /** Messages left for the consumer when this one was delivered. */
  readonly pending: number;
  /** Done: not delivered again. Unconfirmed, so a lost one means another delivery. */
  acknowledge(): void;
  /** Not done: delivered again after `delayMs`; with 0 before anything newer. */
  reject(delayMs: number): void;
  /** Restarts the consumer's ack_wait. */
  extend(): void;
}

/** What asking for messages ended with, when not with messages. */
export type PullFailure = "missing" | "disconnected" | "refused";

/** Messages, in stream order; or, when there can be none, why. Both empty and null: nothing to be had in time. */
export interface PullResult {
  readonly messages: readonly PulledMessage[];
  readonly failure: PullFailure | null;
}

/** How a puller shares its consumer with others. */
export interface PullerOptions {
  /**
   * The consumer's priority group of policy `pinned_client` (ADR-42): one puller gets all its messages until it leaves
   * or stops pulling. The others get empty results at once.
   */
  readonly pinnedIn?: string;
}

/** How many messages to ask for, and how long to wait for the last of them. */
export interface PullRequest {
  readonly batch: number;
  /** 0: takes only what is there. */
  readonly expiresMs: number;
  /** Ends as soon as there was anything, instead of waiting for the batch to fill. */
  readonly untilAny?: boolean;
  /** Most bytes of the messages, headers included. */
  readonly maxBytes?: number;
  /** Takes each message as it comes; the result then holds none. Must not throw. */
  readonly onMessage?: (message: PulledMessage) => void;
}

/** Asks one consumer for messages, one request at a time. */
export interface Puller {
  /**
   * Resolves when the batch is full, after `expiresMs`, or when the consumer refuses, the bus is lost or `signal`
   * aborts.
   */
  pull(request: PullRequest, signal: AbortSignal): Promise<PullResult>;
  /** Whether the group's messages come here, as far as is known. */
  readonly isPinned: boolean;
  /** Renews the pin while this puller works. */
  keepPin(): void;
  /** Leaves the group's messages to the next puller that asks. */
  unpin(): Promise<void>;
  close(): void;
}

/**
 * A puller that speaks the pull protocol (ADR-37) itself: the client library asks for the consumer's info first and
 * waits at least a second.
 */
export function createPuller(
  bus: Bus,
  stream: string,
  consumer: string,
  { pinnedIn: group }: PullerOptions = {},
): Puller {
  const inbox = createInbox(bus.inboxPrefix);
  const subject = `$JS.API.CONSUMER.MSG.NEXT.${stream}.${consumer}`;
  let current: { readonly replyTo: string; readonly take: (msg: Msg) => void } | null = null;
  let pin: string | undefined;

  const subscription = bus[natsConnection].subscribe(`${inbox}.*`, {
    callback: (error, msg) => {
      if (error !== null) return;
      if (!isDelivery(msg) && msg.headers?.code === pinMismatch) pin = undefined;
      if (current !== null) current.take(msg);
      else if (isDelivery(msg)) {
        // Of an abandoned request: redelivered at once.
        pin = pinOf(msg);
        say(msg, "-NAK");
      }
    },
  });

  return {
    pull({ batch, expiresMs, untilAny = false, maxBytes, onMessage }, signal) {
      if (current !== null) throw new Error("one pull at a time");
      return new Promise<PullResult>((resolve) => {
        const messages: PulledMessage[] = [];
        const deliver = onMessage ?? ((message: PulledMessage) => void messages.push(message));
        let delivered = 0;
        const replyTo = `${inbox}.${nuid.next()}`;
        const waits = expiresMs > 0 && (group === undefined || pin !== undefined);
        const heartbeats = waits && expiresMs > 2 * heartbeatMs;
        /** How many messages will come, once a status has said so. */
        let expected = batch;
        let outcome: PullFailure | null = null;
        const finish = (failure: PullFailure | null) => {
          current = null;
          clearTimeout(timer);
          offDisconnect();
          signal.removeEventListener("abort", onAbort);
          resolve({ messages, failure });
        };
        const onAbort = () => finish(null);
        // The broker ends the request itself; the timer is for one that died in the middle of it.
        const answeredWithinMs = heartbeats || !waits ? silenceMs : expiresMs + 1_000;
        let timer = setTimeout(() => finish("disconnected"), answeredWithinMs);
        const awaitNext = (ms: number, failure: PullFailure | null) => {
          clearTimeout(timer);
          timer = setTimeout(() => finish(failure), ms);
        };
        const offDisconnect = bus.onDisconnect(() => finish("disconnected"));
        signal.addEventListener("abort", onAbort, { once: true });
        current = {
          replyTo,
          take(msg) {
            if (isDelivery(msg)) {
              // One request has one pin, and decoding the headers of each message would be most of the work here.
              if (group !== undefined && delivered === 0) pin = pinOf(msg);
              delivered++;
              deliver(pulled(msg));
              if (delivered >= expected) finish(outcome);
              else if (heartbeats && expected === batch) awaitNext(silenceMs, "disconnected");
            } else if (msg.subject === replyTo) {
              const failure = failureOf(msg.headers?.code ?? 0, msg.headers?.description ?? "");
              if (failure === "heartbeat") return awaitNext(silenceMs, "disconnected");
              // A consumer of several replicas agrees with them on each delivery, but not on a status: that overtakes.
              outcome = failure;
              expected = batch - undelivered(msg, batch);
              if (delivered >= expected) finish(outcome);
              else awaitNext(followWithinMs, outcome);
            }
          },
        };
        if (signal.aborted) return finish(null);
        if (!bus.connected) return finish("disconnected");
        bus[natsConnection].publish(
          subject,
          JSON.stringify({
            batch,
            group,
            id: pin,
            // A request that waits without a pin would have those of the pinned one turned away.
            ...(waits ? { expires: nanos(expiresMs), no_wait: untilAny } : { no_wait: true }),
            max_bytes: maxBytes,
            ...(heartbeats ? { idle_heartbeat: nanos(heartbeatMs) } : {}),
          }),
          { reply: replyTo },
        );
      });
    },
    get isPinned() {
      return pin !== undefined;
    },
    keepPin() {
      if (pin === undefined || !bus.connected) return;
      // No message is as small as that: the request is refused, and counts.
      const request = { batch: 1, max_bytes: 1, no_wait: true, group, id: pin };
      bus[natsConnection].publish(subject, JSON.stringify(request), { reply: `${inbox}.pin` });
    },
    async unpin() {
      if (pin === undefined || !bus.connected) return;
      pin = undefined;
      const unpin = `$JS.API.CONSUMER.UNPIN.${stream}.${consumer}`;
      await bus.request(unpin, JSON.stringify({ group }), { timeoutMs: unpinMs }).catch(() => undefined);
    },
    close() {
      subscription.unsubscribe();
    },
  };
}

const pinHeader = "Nats-Pin-Id";
/** Status for a pin that holds no more. */
const pinMismatch = 423;
/** How long the broker may take to note that a puller left, in milliseconds; it finds out by itself, a little later. */
const unpinMs = 1_000;

/** How often a request that waits for long is to show that it is served, in milliseconds. */
const heartbeatMs = 1_000;
/** After this long without a sign of life it is not: its server died, or leads the consumer no more. */
const silenceMs = 2_500;
/** How long messages that a status announced may take to follow it, in milliseconds. */
const followWithinMs = 2_000;

const ackPrefix = "$JS.ACK.";
/** Encoded once, and not for each message. */
const done = new TextEncoder().encode("+ACK");

/** The pin of the puller that a message was given to. */
function pinOf(msg: Msg): string | undefined {
  return msg.headers?.get(pinHeader) || undefined;
}

function isDelivery(msg: Msg): boolean {
  return msg.reply?.startsWith(ackPrefix) === true;
}

/**
 * `$JS.ACK.<stream>.<consumer>.<deliveries>.<stream seq>.<consumer seq>.<timestamp>.<pending>`; newer servers prefix it
 * with `<domain>.<account hash>` and may extend it (ADR-15).
 */
function pulled(msg: Msg): PulledMessage {
  const tokens = (msg.reply ?? "").split(".");
  const at = tokens.length === 9 ? 2 : 4;
  return {
    subject: msg.subject,
    payload: msg.data,
    // Decoded by those who read them.
    get headers() {
      return msg.headers;
    },
    deliveries: Number(tokens[at + 2]),
    sequence: Number(tokens[at + 3]),
    deliverySequence: Number(tokens[at + 4]),
    // Nanoseconds, without the last six digits.
    storedAt: new Date(Number(tokens[at + 5]?.slice(0, -6))),
    pending: Number(tokens[at + 6]),
    acknowledge: () => say(msg, done),
    // A delay of nothing is a delay all the same: newer messages would come before.
    reject: (delayMs) => say(msg, delayMs > 0 ? `-NAK ${JSON.stringify({ delay: nanos(delayMs) })}` : "-NAK"),
    extend: () => say(msg, "+WPI"),
  };
}

/** How much of the batch a final status says was not delivered; all of it without that header. */
function undelivered(msg: Msg, batch: number): number {
  const text = msg.headers?.get("Nats-Pending-Messages") ?? "";
  const count = Number(text);
  return text !== "" && Number.isInteger(count) && count >= 0 && count <= batch ? count : batch;
}

/** Unsaid on a closed connection: the broker delivers the message again, as it does when the words are lost. */
function say(msg: Msg, word: string | Uint8Array): void {
  try {
    msg.respond(word);
  } catch {
    // The connection is closed.
  }
}

/**
 * Statuses of ADR-13: 404 and 408 end a request without failure, as does 409 for a complete batch or size; 503 is a
 * missing consumer.
 */
function failureOf(status: number, description: string): PullFailure | "heartbeat" | null {
  switch (status) {
    case 100:
      return "heartbeat";
    case 404:
    case 408:
    case pinMismatch:
      return null;
    case 409:
      return /exceeds maxbytes|batch completed/i.test(description) ? null : "refused";
    case 503:
      return "missing";
    default:
      return "refused";
  }
}
