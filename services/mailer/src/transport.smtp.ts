import { createTransport, type NodemailerError } from "nodemailer";
import type { Mail } from "./mail.ts";
import { mimeMessageOf } from "./mime-message.ts";
import type { SmtpServer } from "./smtp-url.ts";
import { MailDelayed, MailRefused, type MailTransport } from "./transport.ts";

/** Longest waits for a server, in milliseconds; the signal of a call bounds the whole of it besides. */
export interface SmtpPatience {
  /** For the name to resolve, the connection to stand, and TLS. */
  readonly connectMs: number;
  /** For the first line of the server. */
  readonly greetingMs: number;
  /** Without a byte from either side afterwards. */
  readonly silenceMs: number;
}

const defaultPatience: SmtpPatience = { connectMs: 10_000, greetingMs: 10_000, silenceMs: 20_000 };

/**
 * Hands mail to an SMTP server, one connection for each. No pool: mails are few (api.md bounds them to some hundred an
 * hour), servers close idle connections, and a failure stays with the mail it belongs to.
 */
export function createSmtpTransport(
  server: SmtpServer,
  patience: SmtpPatience = defaultPatience,
): MailTransport {
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
    // A server that does not offer the login we were given is not the one that was meant.
    forceAuth: credentials !== null,
    dnsTimeout: patience.connectMs,
    connectionTimeout: patience.connectMs,
    greetingTimeout: patience.greetingMs,
    socketTimeout: patience.silenceMs,
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

/**
 * No `cause`: nodemailer's error holds the server's words as they came, and a server may repeat what it was sent,
 * password and content included.
 */
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
 * Only what the server says for good about this recipient or this content. A refused login, sender or connection is a
 * matter of settings: the mail waits until somebody has corrected them.
 */
function isRefusal({ code, command, responseCode, permanent }: Partial<NodemailerError>): boolean {
  if (responseCode === undefined) return code === "EENVELOPE" && command === "API";
  // 530 asks for a login first, wherever it comes.
  return permanent === true && responseCode !== 530 && (command === "RCPT TO" || command === "DATA");
}

function secretsOf({ credentials }: SmtpServer, { secrets }: Mail): string[] {
  if (!credentials) return [...secrets];
  const { user, password } = credentials;
  const asSent = [password, `\0${user}\0${password}`].map((text) => Buffer.from(text).toString("base64"));
  return [password, ...asSent, ...secrets];
}

const longestMessage = 400;

function redacted(text: string, secrets: readonly string[]): string {
  const clean = withoutSecrets(text, secrets)
    .replace(/[\p{Cc}\s]+/gu, " ")
    .trim();
  return clean.length > longestMessage ? `${clean.slice(0, longestMessage)}…` : clean;
}

/** In one pass, the longest first: a secret may be part of another, or of the word that replaces it. */
function withoutSecrets(text: string, secrets: readonly string[]): string {
  const patterns = secrets
    .filter((secret) => secret !== "")
    .sort((a, b) => b.length - a.length)
    .map((secret) => secret.replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&"));
  return patterns.length === 0 ? text : text.replace(new RegExp(patterns.join("|"), "g"), "[redacted]");
}
