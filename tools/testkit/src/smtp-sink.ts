import { once } from "node:events";
import type { Socket } from "node:net";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import PostalMime, { type Email } from "postal-mime";
import { SMTPServer } from "smtp-server";
import { defaultPatienceMs, eventually } from "./eventually.ts";
import { testCertificate } from "./test-certificate.ts";

/** A mail that was accepted. */
export interface ReceivedMail {
  /** Envelope addresses; those of the header are in `content`. */
  readonly from: string;
  readonly to: readonly string[];
  /** Whether it came over TLS. */
  readonly encrypted: boolean;
  readonly content: Email;
  readonly source: string;
}

/** One attempt to deliver, before it is decided. */
export interface DeliveryAttempt {
  /** 1 for the first since the start. */
  readonly number: number;
  readonly from: string;
  readonly to: readonly string[];
}

/** `drop` closes the connection without an answer; `refuse` is an SMTP code, 4xx for later, 5xx for never. */
export type DeliveryBehaviour =
  | "accept"
  | "drop"
  | { refuse: number; message?: string }
  | { acceptAfterMs: number };

/** What the server demands of clients; nothing by default. */
export interface SmtpSinkOptions {
  /** The only login that is accepted; another one is refused with 535. */
  readonly login?: { readonly user: string; readonly password: string };
  /** TLS from the first byte, or offered by STARTTLS; the certificate is `testCertificate`. */
  readonly tls?: "implicit" | "starttls";
  /** Whether addresses beyond ASCII are taken (SMTPUTF8); true by default. */
  readonly utf8?: boolean;
}

/** A real SMTP server on a free port that keeps what it is sent. */
export interface SmtpSink extends AsyncDisposable {
  /** `smtp://127.0.0.1:PORT` (`smtps` for implicit TLS), without a login. */
  readonly url: string;
  readonly mails: readonly ReceivedMail[];
  readonly attempts: readonly DeliveryAttempt[];
  /** Decides later attempts; at first all are accepted. */
  behave(rule: (attempt: DeliveryAttempt) => DeliveryBehaviour): void;
  /** SMTP code for a recipient, which counts as no attempt; null accepts. */
  refuseRecipients(rule: (address: string) => number | null): void;
  /** The first mail that fits, received already or within the bound (default {@link defaultPatienceMs}). */
  awaitMail(fits?: (mail: ReceivedMail) => boolean, withinMs?: number): Promise<ReceivedMail>;
  stop(): Promise<void>;
}

/** Starts the server, by default plain SMTP without a login. */
export async function startSmtpSink({ login, tls, utf8 = true }: SmtpSinkOptions = {}): Promise<SmtpSink> {
  const mails: ReceivedMail[] = [];
  const attempts: DeliveryAttempt[] = [];
  const sockets = new Map<number, Socket>();
  const stopping = new AbortController();
  let rule: (attempt: DeliveryAttempt) => DeliveryBehaviour = () => "accept";
  let recipientRule: (address: string) => number | null = () => null;

  const server = new SMTPServer({
    ...(tls ? testCertificate : {}),
    secure: tls === "implicit",
    authOptional: login === undefined,
    allowInsecureAuth: true,
    disabledCommands: [...(tls === "starttls" ? [] : ["STARTTLS"]), ...(login ? [] : ["AUTH"])],
    hideSMTPUTF8: !utf8,
    disableReverseLookup: true,
    closeTimeout: 200,
    onAuth({ username, password }, _session, answer) {
      if (username === login?.user && password === login?.password) answer(null, { user: username });
      else answer(Object.assign(new Error("Invalid username or password"), { responseCode: 535 }));
    },
    onRcptTo({ address }, _session, answer) {
      const code = recipientRule(address);
      answer(code === null ? null : Object.assign(new Error("recipient refused"), { responseCode: code }));
    },
    onData(stream, session, answer) {
      const from = session.envelope.mailFrom === false ? "" : session.envelope.mailFrom.address;
      const to = session.envelope.rcptTo.map(({ address }) => address);
      const receive = async () => {
        const source = await text(stream);
        const attempt = { number: attempts.length + 1, from, to };
        attempts.push(attempt);
        const behaviour = rule(attempt);
        if (behaviour === "drop") return sockets.get(session.remotePort)?.destroy();
        if (typeof behaviour === "object" && "refuse" in behaviour) {
          return answer(
            Object.assign(new Error(behaviour.message ?? "refused"), { responseCode: behaviour.refuse }),
          );
        }
        if (typeof behaviour === "object")
          await sleep(behaviour.acceptAfterMs, null, { signal: stopping.signal });
        mails.push({ from, to, encrypted: session.secure, source, content: await PostalMime.parse(source) });
        answer();
      };
      receive().catch((error) => answer(error));
    },
  });
  server.on("error", () => {
    // Some tests are about clients that disconnect.
  });
  const listening = server.listen(0, "127.0.0.1");
  listening.on("connection", (socket) => {
    const { remotePort = 0 } = socket;
    sockets.set(remotePort, socket);
    socket.once("close", () => sockets.delete(remotePort));
  });
  await once(listening, "listening");
  const address = listening.address();
  if (address === null || typeof address === "string") throw new Error("the SMTP server has no port");

  async function stop() {
    stopping.abort();
    await new Promise<void>((resolve) => server.close(() => resolve()));
  }
  return {
    url: `${tls === "implicit" ? "smtps" : "smtp"}://127.0.0.1:${address.port}`,
    mails,
    attempts,
    behave(newRule) {
      rule = newRule;
    },
    refuseRecipients(newRule) {
      recipientRule = newRule;
    },
    async awaitMail(fits = () => true, withinMs = defaultPatienceMs) {
      return await eventually(() => mails.find(fits), { withinMs, everyMs: 5 }).catch((cause) => {
        throw new Error(
          `no such mail in ${withinMs} ms; ${mails.length} came, ${attempts.length} were tried`,
          { cause },
        );
      });
    },
    stop,
    [Symbol.asyncDispose]: stop,
  };
}
