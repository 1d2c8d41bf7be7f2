import { visibleText } from "@devmesh/contracts/model/visible-text";
import { createTransport, type NodemailerError } from "nodemailer";
import { mimeMessageOf } from "./mime-message.ts";
import type { SmtpServer } from "./smtp-url.ts";
import { type Mail, MailDelayed, MailRefused, type MailTransport } from "./transport.ts";

/** Timeouts in milliseconds; the signal of a call bounds all of it. */
interface SmtpTimeouts {
  /** Of the name look-up, the connection and TLS. */
  readonly connectMs: number;
  /** Of the first line of the server. */
  readonly greetingMs: number;
  /** Without a byte from either side. */
  readonly idleMs: number;
}

const defaultTimeouts: SmtpTimeouts = { connectMs: 10_000, greetingMs: 10_000, idleMs: 20_000 };

/** Sends mail to an SMTP server, one connection for each: mails are few, and servers close idle connections. */
export function createSmtpTransport(server: SmtpServer, timeouts = defaultTimeouts): MailTransport {
  const { credentials } = server;
  const transport = createTransport({
    host: server.host,
    port: server.port,
    secure: server.implicitTls,
    requireTLS: !server.implicitTls && server.startTls === "required",
    opportunisticTLS: server.startTls === "opportunistic",
    ignoreTLS: server.startTls === "off",
    tls: { rejectUnauthorized: server.verifyCertificate },
    ...(credentials ? { auth: { user: credentials.user, pass: credentials.password } } : {}),
    // A server that offers no login is not the configured one.
    forceAuth: credentials !== null,
    dnsTimeout: timeouts.connectMs,
    connectionTimeout: timeouts.connectMs,
    greetingTimeout: timeouts.greetingMs,
    socketTimeout: timeouts.idleMs,
    socketCloseTimeout: 1_000,
    maxResponseSize: 65_536,
    logger: false,
  });
  return {
    async send(mail: Mail, signal: AbortSignal) {
      try {
        await transport.sendMail({ ...mimeMessageOf(mail), signal });
      } catch (error) {
        throw failureOf(error, secretsOf(server, mail));
      }
    },
  };
}

/** Without a `cause`: nodemailer's error holds the server's reply, which may repeat password and content. */
function failureOf(error: unknown, secrets: readonly string[]): MailRefused | MailDelayed {
  const { message, code, originalCode, command, responseCode, permanent }: NodemailerError =
    error instanceof Error ? error : new Error(String(error));
  const stage = command === undefined || command === "API" ? "" : ` at ${command}`;
  const kind = originalCode ?? code ?? "error";
  const text = `SMTP ${kind}${stage}: ${redacted(message, secrets)}`;
  return isRefusal({ code, command, responseCode, permanent })
    ? new MailRefused(text)
    : new MailDelayed(text);
}

/**
 * Only a permanent reply about this recipient or this content. With a refused login, sender or connection the settings
 * are wrong: the mail waits until they are corrected.
 */
function isRefusal({ code, command, responseCode, permanent }: Partial<NodemailerError>): boolean {
  if (responseCode === undefined) return code === "EENVELOPE" && command === "API";
  // 530 asks for a login, after any command.
  return permanent === true && responseCode !== 530 && (command === "RCPT TO" || command === "DATA");
}

function secretsOf({ credentials }: SmtpServer, { secrets }: Mail): string[] {
  if (!credentials) return [...secrets];
  const { user, password } = credentials;
  const asSent = [password, `\0${user}\0${password}`].map((text) => Buffer.from(text).toString("base64"));
  return [password, ...asSent, ...secrets];
}

const maxMessageLength = 400;

function redacted(text: string, secrets: readonly string[]): string {
  const clean = visibleText(
    withoutSecrets(text, secrets)
      .replace(/[\p{Cc}\s]+/gu, " ")
      .trim(),
  );
  return clean.length > maxMessageLength ? `${clean.slice(0, maxMessageLength)}…` : clean;
}

/** In one pass, the longest first: a secret may be part of another, or of the replacement. */
function withoutSecrets(text: string, secrets: readonly string[]): string {
  const patterns = secrets
    .filter((secret) => secret !== "")
    .sort((a, b) => b.length - a.length)
    .map((secret) => secret.replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&"));
  return patterns.length === 0 ? text : text.replace(new RegExp(patterns.join("|"), "g"), "[redacted]");
}
