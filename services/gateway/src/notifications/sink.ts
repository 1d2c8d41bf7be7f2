import type { StreamFormat } from "./frame.ts";

/** Why the gateway ends a stream: a close code of WebSockets (RFC 6455, 7.4) and one sentence without secrets. */
export interface CloseReason {
  readonly code: 1008 | 1012 | 1013;
  readonly reason: string;
}

/** The connection to one client. Nothing here throws or waits. */
export interface Sink {
  readonly format: StreamFormat;
  /** Bytes written that the operating system has not taken yet. */
  readonly waitingBytes: number;
  /** Sends whole frames. */
  write(bytes: Uint8Array): void;
  /** Keeps the connection alive, and ends one that is known to be dead. */
  heartbeat(): void;
  /** Sends the reason after what was written, then ends the connection. */
  close(reason: CloseReason): void;
  /** Ends the connection at once. */
  destroy(): void;
  /** Resolves when some waiting bytes were taken, or the connection is gone. */
  drained(): Promise<void>;
  /** Resolves when the connection is gone. */
  readonly gone: Promise<void>;
}
