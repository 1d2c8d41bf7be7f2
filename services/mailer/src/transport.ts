import type { MailAddress } from "./mail-address.ts";

/** A mail ready to be sent. Holds secrets of its recipient: never log one. */
export interface Mail {
  /** Part of file names: letters, digits, `-` and `_`; the same in each attempt. */
  readonly id: string;
  /** With angle brackets; the same in each attempt, so that a mail sent twice can be recognised. */
  readonly messageId: string;
  /** Equal in each attempt; mails are sorted by it. */
  readonly queuedAt: Date;
  readonly from: MailAddress;
  /** The only recipient: a bare address. */
  readonly to: string;
  readonly subject: string;
  readonly text: string;
  readonly html: string;
  /** Parts of `text` and `html` that must never appear in an error or a log. */
  readonly secrets: readonly string[];
}

/** Sends mail. Its errors hold no credentials and nothing of a mail's content, so they may be logged. */
export interface MailTransport {
  /**
   * Resolves when the other side has accepted the mail. @throws MailRefused when no later attempt can succeed; after
   * any other error one may, and the mail may have been accepted all the same
   */
  send(mail: Mail, signal: AbortSignal): Promise<void>;
}

/** A permanent refusal of this recipient or this mail. */
export class MailRefused extends Error {
  override readonly name = "MailRefused";
}

/** A temporary failure: the server is down, slow, asks to retry, or its settings are wrong. */
export class MailDelayed extends Error {
  override readonly name = "MailDelayed";
}
