import type { SendMailOptions } from "nodemailer";
import type { Mail } from "./mail.ts";

/** A mail as nodemailer takes it: addresses as values, never parsed from text, so that one stays one. */
export function mimeMessageOf(mail: Mail): SendMailOptions {
  const { from, to, subject, text, html, messageId } = mail;
  return {
    from: { name: from.name, address: from.address },
    to: { name: "", address: to },
    envelope: { from: from.address, to: [to] },
    subject,
    text,
    html,
    messageId,
    // Keeps out-of-office replies from answering (RFC 3834).
    headers: { "Auto-Submitted": "auto-generated" },
    disableFileAccess: true,
    disableUrlAccess: true,
  };
}
