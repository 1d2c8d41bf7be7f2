import type { SendMailOptions } from "nodemailer";
import type { Mail } from "./transport.ts";

/** A mail for nodemailer, with addresses as values, so that it parses none from text. */
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

/** RFC 5322, 2.1.1. */
const maxLineLength = 998;

/** Sends a body unencoded where mail allows it: nodemailer would break lines over 76 characters, such as links. */
function bodyOf(type: string, content: string): SendMailOptions["text"] {
  const lines = content.split(/\r\n|\r|\n/);
  if (!lines.every((line) => line.length <= maxLineLength && /^[\t\x20-\x7e]*$/.test(line))) return content;
  const header = `Content-Type: ${type}; charset=utf-8\r\nContent-Transfer-Encoding: 7bit\r\n\r\n`;
  return { raw: header + lines.join("\r\n") };
}
