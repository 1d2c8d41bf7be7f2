import type { StreamFormat } from "./frame.ts";

/** Why the gateway ends a stream: the code of a WebSocket's close (RFC 6455, 7.4) and one sentence without secrets. */
export interface Farewell {
  readonly code: 1008 | 1012 | 1013;
  readonly reason: string;
}

/** The connection to one client, as far as a listener uses it. Nothing here throws or waits. */
export interface Outlet {
  readonly format: StreamFormat;
  /** Bytes given to {@link write} that the client's system has not taken yet. */
  readonly waitingBytes: number;
  /** Sends whole frames. */
  write(bytes: Uint8Array): void;
  /** Shows the client that the connection lives; ends it where it is known to be dead. */
  beat(): void;
  /** Says farewell behind what was written; nothing is written any more. */
  close(farewell: Farewell): void;
  /** Ends the connection at once. */
  destroy(): void;
  /** Resolves when something was taken of what waits, or the connection is gone. */
  drained(): Promise<void>;
  /** Resolves when the connection is gone. */
  readonly gone: Promise<void>;
}
