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
    text: bodyOf("text/plain", text),
    html: bodyOf("text/html", html),
    messageId,
    // Keeps out-of-office replies from answering (RFC 3834).
    headers: { "Auto-Submitted": "auto-generated" },
    disableFileAccess: true,
    disableUrlAccess: true,
  };
}

/** Longest line of a mail, in characters (RFC 5322, 2.1.1). */
const longestLine = 998;

/**
 * A body that travels as it is where mail allows that, so that link and token can be copied from the source:
 * nodemailer would encode, and break, any line over 76 characters, which a link is.
 */
function bodyOf(type: string, content: string): SendMailOptions["text"] {
  const lines = content.split(/\r\n|\r|\n/);
  if (!lines.every((line) => line.length <= longestLine && /^[\t\x20-\x7e]*$/.test(line))) return content;
  const header = `Content-Type: ${type}; charset=utf-8\r\nContent-Transfer-Encoding: 7bit\r\n\r\n`;
  return { raw: header + lines.join("\r\n") };
}
