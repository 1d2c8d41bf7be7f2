import { ServiceEnv } from "@devmesh/service-kit/process/env";
import { z } from "zod";
import { MailAddressText } from "./mail-address.ts";
import { SmtpUrl } from "./smtp-url.ts";

const PublicUrl = z
  .url({ protocol: /^https?$/, error: "must be an http or https URL" })
  .transform((text) => new URL(text))
  .refine((url) => url.search === "" && url.hash === "" && url.username === "" && url.password === "", {
    error: "must hold no user, query or fragment",
  });

/** The mailer's environment. */
export const MailerEnv = ServiceEnv.extend({
  /** The REST API and the confirmation page for recipients of mail. */
  PUBLIC_URL: PublicUrl,
  /** Holds a password; without it mails become files in `OUTBOX_DIR`. */
  SMTP_URL: SmtpUrl.optional(),
  /** Folder of `.eml` files. */
  OUTBOX_DIR: z.string().optional(),
  /** Default: `Devmesh <no-reply@HOST>` with the host of `PUBLIC_URL`. */
  MAIL_FROM: MailAddressText.optional(),
}).superRefine(({ SMTP_URL, OUTBOX_DIR }, context) => {
  if (SMTP_URL !== undefined || OUTBOX_DIR !== undefined) return;
  context.addIssue({ code: "custom", path: ["OUTBOX_DIR"], message: "needed while SMTP_URL is not set" });
});
export type MailerEnv = z.infer<typeof MailerEnv>;
