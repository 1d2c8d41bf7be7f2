import { errors, type Msg, type MsgHdrs, type NatsConnection, nuid } from "@nats-io/nats-core";
import { isReason } from "../errors.ts";
import { reconnectedSubject } from "../subjects.ts";

/** One request on the bus. */
interface RequestOptions {
  /** Rejects with `TimeoutError` after it. */
  readonly timeoutMs: number;
  readonly headers?: MsgHdrs;
  /** The service that answers. Default: the broker itself. */
  readonly answeredBy?: string;
  /**
   * Rejects with its reason when it aborts. `deadline_exceeded` is left to the timeout, a little later, so that the
   * callee's own error can arrive.
   */
  readonly signal?: AbortSignal;
  /**
   * Rejects with `ClosedConnectionError` as soon as the connection is lost, or the one of a replica of `answeredBy`,
   * since the reply may be lost with it.
   */
  readonly endsWithConnection?: boolean;
  /** Asked once no reply has come for `afterMs`: where it is true, the request ends as by its timeout. */
  readonly silence?: { readonly afterMs: number; readonly isFinal: () => Promise<boolean> };
}

/**
 * Sends a request and resolves with its first reply. Rejects with `NoRespondersError` when no one subscribes to the
 * subject, `TimeoutError`, `PermissionViolationError`, `ClosedConnectionError`, or the reason of the signal.
 */
export type SendRequest = (
  subject: string,
  body: Uint8Array | string,
  options: RequestOptions,
) => Promise<Msg>;

interface PendingRequest {
  readonly subject: string;
  readonly answeredBy: string;
  readonly endsWithConnection: boolean;
  settle(reply: Msg | null, error?: unknown): void;
}

/** Whether a message is the broker's answer to a publication on a subject without a subscriber. */
export function isNoResponders(msg: Msg): boolean {
  return msg.data.length === 0 && msg.headers?.code === 503;
}

/**
 * Requests over one inbox of the connection, with a level for the service that answers (`answersOf`). The client's own
 * `request` builds an error with its stack for each reply that arrives, and several promises for each request: 3 % of
 * the gateway's time and 7 % of the bridge's.
 * It also writes each request by itself, which takes half of the broker's time; here all of one turn of the event loop
 * leave together.
 */
export function createRequests(connection: NatsConnection, inboxPrefix: string) {
  const pending = new Map<string, PendingRequest>();
  const inbox = nuid.next();
  let lastToken = 0;
  let lastSentMs = Number.NEGATIVE_INFINITY;
  let unsent: (() => void)[] = [];

  function sendTogether(): void {
    const publications = unsent;
    unsent = [];
    for (const publish of publications) publish();
  }

  connection.subscribe(`${inboxPrefix}.*.${inbox}.*`, {
    callback: (error, msg) => {
      if (error !== null) return failAll(error);
      const request = pending.get(msg.subject.slice(msg.subject.lastIndexOf(".") + 1));
      if (request === undefined) return;
      if (isNoResponders(msg)) request.settle(null, new errors.NoRespondersError(request.subject));
      else request.settle(msg);
    },
  });

  connection.subscribe(reconnectedSubject(inboxPrefix, "*"), {
    callback: (error, msg) => {
      if (error === null) endWithConnection(msg.subject.split(".").at(-2));
    },
  });

  /** `service`: of its replies alone; of all others too without it. */
  function endWithConnection(service?: string): void {
    for (const request of [...pending.values()]) {
      if (!request.endsWithConnection || (service !== undefined && request.answeredBy !== service)) continue;
      request.settle(null, new errors.ClosedConnectionError());
    }
  }

  function failAll(error: unknown): void {
    for (const request of [...pending.values()]) request.settle(null, error);
  }

  const send: SendRequest = (subject, body, options) =>
    new Promise((resolve, reject) => {
      const {
        timeoutMs,
        headers,
        answeredBy = "broker",
        signal,
        endsWithConnection = false,
        silence,
      } = options;
      if (signal?.aborted) return reject(signal.reason);
      const token = (++lastToken).toString(36);
      const timeOut = () => settle(null, new errors.TimeoutError());
      let timer: NodeJS.Timeout;
      if (silence === undefined || silence.afterMs >= timeoutMs) timer = setTimeout(timeOut, timeoutMs);
      else
        timer = setTimeout(() => {
          timer = setTimeout(timeOut, timeoutMs - silence.afterMs);
          void silence.isFinal().then((isFinal) => isFinal && timeOut());
        }, silence.afterMs);
      const onAbort = () => {
        if (!isReason(signal?.reason, "deadline_exceeded")) settle(null, signal?.reason);
      };
      const settle = (reply: Msg | null, error?: unknown) => {
        if (!pending.delete(token)) return;
        clearTimeout(timer);
        signal?.removeEventListener("abort", onAbort);
        if (reply === null) reject(error);
        else resolve(reply);
      };
      pending.set(token, { subject, answeredBy, endsWithConnection, settle });
      lastSentMs = performance.now();
      signal?.addEventListener("abort", onAbort);
      const publish = () => {
        if (!pending.has(token)) return;
        try {
          const reply = `${inboxPrefix}.${answeredBy}.${inbox}.${token}`;
          connection.publish(subject, body, { reply, ...(headers && { headers }) });
        } catch (error) {
          settle(null, error);
        }
      };
      if (unsent.push(publish) === 1) setImmediate(sendTogether);
    });

  return {
    send,
    /** Whether a reply may arrive, when none does `soonMs` milliseconds after the last request. */
    isReplyNear: (soonMs: number) => pending.size > 0 && performance.now() < lastSentMs + soonMs,
    /** Rejects the requests that an error of the connection concerns. */
    fail(error: Error): void {
      if (!(error instanceof errors.PermissionViolationError) || error.operation !== "publish") return;
      for (const request of [...pending.values()])
        if (request.subject === error.subject) request.settle(null, error);
    },
    /** Rejects the requests that end with their connection. */
    loseConnection: () => endWithConnection(),
    /** Rejects all requests: the connection is closed. */
    close: () => failAll(new errors.ClosedConnectionError()),
  };
}
