import { isInternational } from "@devmesh/contracts/model/email-address";
import { visibleText } from "@devmesh/contracts/model/visible-text";
import { createTransport, type NodemailerError } from "nodemailer";
import SmtpConnection from "nodemailer/lib/smtp-connection";
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
  const options = {
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
  } as const;
  const transport = createTransport(options);
  return {
    async send(mail: Mail, signal: AbortSignal) {
      try {
        const needsUtf8 = [mail.to, mail.from.address].some(isInternational);
        if (needsUtf8 && !(await offersUtf8(options, signal))) throw withoutUtf8(mail);
        await transport.sendMail({ ...mimeMessageOf(mail), signal });
      } catch (error) {
        throw error instanceof MailRefused || error instanceof MailDelayed
          ? error
          : failureOf(error, secretsOf(server, mail));
      }
    },
  };
}

/** Whether the server takes addresses beyond ASCII. nodemailer would send one to a server that does not, too. */
async function offersUtf8(options: SmtpConnection.Options, signal: AbortSignal): Promise<boolean> {
  const connection = new SmtpConnection(options);
  const { promise, resolve, reject } = Promise.withResolvers<boolean>();
  const abort = () => reject(signal.reason);
  signal.addEventListener("abort", abort);
  try {
    signal.throwIfAborted();
    connection.once("error", reject).once("end", () => reject(new Error("Connection closed")));
    // The last answer before a login is the one to EHLO.
    connection.connect((error) =>
      error ? reject(error) : resolve(/^250[ -]SMTPUTF8\b/im.test(String(connection.lastServerResponse))),
    );
    return await promise;
  } finally {
    signal.removeEventListener("abort", abort);
    connection.on("error", () => undefined).close();
  }
}

function withoutUtf8({ to }: Mail): MailRefused | MailDelayed {
  const lacks = "the mail server does not offer SMTPUTF8 (RFC 6531), which the";
  return isInternational(to)
    ? new MailRefused(`${lacks} recipient's address needs: it has letters beyond ASCII before the @`)
    : new MailDelayed(`${lacks} sender's address needs: set MAIL_FROM to one of ASCII letters`);
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
