import type { Mail } from "./mail.ts";

/** The way out for mail. What it throws carries no credentials and nothing of a mail's content, so it may be logged. */
export interface MailTransport {
  /**
   * Hands over one mail; resolves when the other side has taken responsibility for it. Throws {@link MailRefused}
   * when trying again cannot help; any other error means that a later attempt may succeed. The error does not prove
   * that the mail was not taken: the answer may have been lost.
   */
  send(mail: Mail, signal: AbortSignal): Promise<void>;
}

/** The other side refused this recipient or this mail for good. */
export class MailRefused extends Error {
  override readonly name = "MailRefused";
}

/** The mail could not be handed over now: the server is away, slow, or says to come back, or its settings are wrong. */
export class MailDelayed extends Error {
  override readonly name = "MailDelayed";
}
