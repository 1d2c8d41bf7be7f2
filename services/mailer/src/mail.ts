import type { MailAddress } from "./mail-address.ts";

/** A mail ready to be sent. It holds secrets of its recipient: never log one. */
export interface Mail {
  /** Names the mail in file names: letters, digits, `-` and `_` only; the same in each attempt to send it. */
  readonly id: string;
  /** With angle brackets; the same in each attempt, so that a mail sent twice can be recognised. */
  readonly messageId: string;
  /** When it was asked for: what mails are sorted by; the same in each attempt. */
  readonly queuedAt: Date;
  readonly from: MailAddress;
  /** The only recipient: a bare address. */
  readonly to: string;
  readonly subject: string;
  readonly text: string;
  readonly html: string;
  /** What stands in `text` and `html` and must never stand in an error or a log. */
  readonly secrets: readonly string[];
}
