import { once } from "node:events";
import { createServer, type Socket } from "node:net";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import { eventually } from "@devmesh/testkit/eventually";
import { startSmtpSink } from "@devmesh/testkit/smtp-sink";
import { testCertificate } from "@devmesh/testkit/test-certificate";
import { describe, expect, test } from "@jest/globals";
import { SmtpUrl } from "../src/smtp-url.ts";
import { createSmtpTransport } from "../src/transport.smtp.ts";
import { MailDelayed, MailRefused } from "../src/transport.ts";
import { exampleMail, mailTransportSuite } from "./mail-transport.suite.ts";

mailTransportSuite("SMTP", async () => {
  const sink = await startSmtpSink();
  return {
    transport: createSmtpTransport(SmtpUrl.parse(sink.url)),
    arrived: async () => sink.mails.map(({ source }) => source),
    [Symbol.asyncDispose]: () => sink.stop(),
  };
});

const login = { user: "mailer@example.com", password: "p@ss/wörd:%" };
const quick = { connectMs: 10_000, greetingMs: 10_000, idleMs: 300 };

/** `SMTP_URL` of a server with a user and password put in. */
function withLogin(url: string, password = login.password): string {
  const { protocol, host } = new URL(url);
  return `${protocol}//${encodeURIComponent(login.user)}:${encodeURIComponent(password)}@${host}`;
}

/** The failure of one attempt to send. */
async function failureOf(
  url: string,
  { signal = AbortSignal.timeout(10_000), patience = quick } = {},
): Promise<Error> {
  const sending = createSmtpTransport(SmtpUrl.parse(url), patience).send(exampleMail(), signal);
  return await sending.then(
    () => new Error("the mail was taken"),
    (error: Error) => error,
  );
}

/** A server with scripted replies, for faults that no proper server makes. */
async function startScriptedServer(converse: (socket: Socket) => void) {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {
      // The client breaking off is what these tests are about.
    });
    socket.once("close", () => sockets.delete(socket));
    converse(socket);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  return {
    url: `smtp://127.0.0.1:${address.port}`,
    open: () => sockets.size,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}

/** Answers each line by the first rule that fits, `250 ok` where none does; the content of a mail only by a rule. */
function answering(socket: Socket, rules: readonly (readonly [RegExp, string | (() => void)])[]) {
  let received = "";
  let inContent = false;
  socket.write("220 scripted\r\n");
  socket.setEncoding("utf8").on("data", (text: string) => {
    received += text;
    const rule = rules.find(([pattern]) => pattern.test(received));
    if (!rule && (inContent || !received.endsWith("\r\n"))) return;
    inContent = /^DATA/.test(received);
    received = "";
    const answer = rule?.[1] ?? "250 ok\r\n";
    if (typeof answer === "string") socket.write(answer);
    else answer();
  });
}

describe("an SMTP server that refuses", () => {
  test.each([550, 551, 553, 554])("a recipient with %i has refused for good", async (code) => {
    await using sink = await startSmtpSink();
    sink.refuseRecipients(() => code);
    const failure = await failureOf(sink.url);
    expect(failure).toBeInstanceOf(MailRefused);
    expect(failure.message).toContain(`at RCPT TO`);
    expect(failure.message).toContain(`${code} recipient refused`);
  });

  test.each([421, 450, 451, 452])("a recipient with %i may take the mail later", async (code) => {
    await using sink = await startSmtpSink();
    sink.refuseRecipients(() => code);
    expect(await failureOf(sink.url)).toBeInstanceOf(MailDelayed);
  });

  test("the content with 554 has refused for good, with 451 may take it later", async () => {
    await using sink = await startSmtpSink();
    sink.behave(() => ({ refuse: 554, message: "looks like spam" }));
    expect(await failureOf(sink.url)).toBeInstanceOf(MailRefused);
    sink.behave(() => ({ refuse: 451 }));
    expect(await failureOf(sink.url)).toBeInstanceOf(MailDelayed);
  });

  test("the sender for good is a matter of settings, the mail waits", async () => {
    await using server = await startScriptedServer((socket) =>
      answering(socket, [[/^MAIL FROM/, "550 sender not allowed\r\n"]]),
    );
    expect(await failureOf(server.url)).toBeInstanceOf(MailDelayed);
  });

  test("every connection is a matter of settings, the mail waits", async () => {
    await using server = await startScriptedServer((socket) => socket.end("554 no service for you\r\n"));
    expect(await failureOf(server.url)).toBeInstanceOf(MailDelayed);
  });

  test("connections because it is not there makes the mail wait", async () => {
    await using server = await startScriptedServer(() => {});
    const { url } = server;
    await server[Symbol.asyncDispose]().catch(() => {});
    expect((await failureOf(url)).message).toContain("ECONNREFUSED");
  });
});

describe("an SMTP server without SMTPUTF8", () => {
  const send = (url: string, mail = exampleMail({ to: "jörg@example.com" })) =>
    createSmtpTransport(SmtpUrl.parse(url), quick)
      .send(mail, AbortSignal.timeout(10_000))
      .then(
        () => new Error("the mail was taken"),
        (error: Error) => error,
      );

  test("is not offered an address beyond ASCII, which is refused for good", async () => {
    await using sink = await startSmtpSink({ utf8: false });
    const failure = await send(sink.url);
    expect(failure).toBeInstanceOf(MailRefused);
    expect(failure.message).toBe(
      "the mail server does not offer SMTPUTF8 (RFC 6531), which the recipient's address needs: it has letters beyond ASCII before the @",
    );
    expect(sink.attempts).toEqual([]);
  });

  test("makes the mail wait where the sender is such an address, which is a setting", async () => {
    await using sink = await startSmtpSink({ utf8: false });
    const from = { name: "", address: "mésh@example.com" };
    const failure = await send(sink.url, exampleMail({ from }));
    expect(failure).toBeInstanceOf(MailDelayed);
    expect(failure.message).toContain("MAIL_FROM");
    expect(sink.attempts).toEqual([]);
  });

  test("is asked again where it is away, hangs or breaks off", async () => {
    await using silent = await startScriptedServer(() => {});
    expect(await send(silent.url)).toBeInstanceOf(MailDelayed);
    await using broken = await startScriptedServer((socket) => socket.end());
    expect(await send(broken.url)).toBeInstanceOf(MailDelayed);
    const { url } = broken;
    await broken[Symbol.asyncDispose]().catch(() => {});
    expect((await send(url)).message).toContain("ECONNREFUSED");
  });

  test("that offers it after STARTTLS alone gets the mail", async () => {
    await using sink = await startSmtpSink({ tls: "starttls" });
    await createSmtpTransport(SmtpUrl.parse(sink.url)).send(
      exampleMail({ to: "用户@example.com" }),
      AbortSignal.timeout(10_000),
    );
    expect(sink.mails.map(({ to, encrypted }) => [to, encrypted])).toEqual([[["用户@example.com"], true]]);
  });
});

describe("an SMTP server that asks for a login", () => {
  test("gets it, letters that a URL must encode included", async () => {
    await using sink = await startSmtpSink({ login });
    await createSmtpTransport(SmtpUrl.parse(withLogin(sink.url))).send(
      exampleMail(),
      AbortSignal.timeout(10_000),
    );
    expect(sink.mails).toHaveLength(1);
  });

  test("and gets a wrong one makes the mail wait, and the error holds no password", async () => {
    await using sink = await startSmtpSink({ login });
    const failure = await failureOf(withLogin(sink.url, "wrong-secret"));
    expect(failure).toBeInstanceOf(MailDelayed);
    expect(failure.message).toContain("535");
    expect(JSON.stringify([failure, failure.message, failure.stack, failure.cause])).not.toContain(
      "wrong-secret",
    );
  });

  test("and gets none makes the mail wait", async () => {
    await using sink = await startSmtpSink({ login });
    expect(await failureOf(sink.url)).toBeInstanceOf(MailDelayed);
  });

  test("but does not offer it is not sent the mail", async () => {
    await using sink = await startSmtpSink();
    expect(await failureOf(withLogin(sink.url))).toBeInstanceOf(MailDelayed);
    expect(sink.mails).toEqual([]);
  });

  test("and repeats the password does not get it into the error", async () => {
    await using server = await startScriptedServer((socket) =>
      answering(socket, [
        [/^EHLO/, "250-scripted\r\n250 AUTH PLAIN\r\n"],
        [
          /^AUTH/,
          `535 bad ${login.password} ${Buffer.from(`\0${login.user}\0${login.password}`).toString("base64")}\r\n`,
        ],
      ]),
    );
    const { message } = await failureOf(withLogin(server.url));
    expect(message).toContain("535 bad [redacted] [redacted]");
  });
});

describe("an SMTP server that repeats a mail's secrets in its answer", () => {
  test("has each of them replaced once, also where one is part of another or a pattern", async () => {
    await using server = await startScriptedServer((socket) =>
      answering(socket, [[/^RCPT/, "550 dact dact-long a.b axb \u202ea\u200b\r\n"]]),
    );
    const mail = exampleMail({ secrets: ["dact", "dact-long", "a.b"] });
    const sending = createSmtpTransport(SmtpUrl.parse(server.url), quick).send(
      mail,
      AbortSignal.timeout(10_000),
    );
    await expect(sending).rejects.toThrow(/550 \[redacted\] \[redacted\] \[redacted\] axb \\u202ea\\u200b/);
  });

  test("does not get them into the error, nor line breaks, nor without end", async () => {
    const [token = ""] = exampleMail().secrets;
    await using server = await startScriptedServer((socket) =>
      answering(socket, [
        [/^DATA/, "354 go on\r\n"],
        [/\r\n\.\r\n$/, `554-refused ${token}\r\n554 ${"x".repeat(5_000)}\r\n`],
      ]),
    );
    const failure = await failureOf(server.url);
    expect(failure).toBeInstanceOf(MailRefused);
    expect(failure.message).not.toContain(token);
    expect(failure.message).not.toMatch(/[\r\n]/);
    expect(failure.message.length).toBeLessThan(500);
  });
});

describe("an SMTP server that is slow or breaks off", () => {
  test("never greets: given up in bounded time", async () => {
    await using server = await startScriptedServer(() => {});
    const patience = { connectMs: 60_000, greetingMs: 100, idleMs: 60_000 };
    const failure = await failureOf(server.url, { patience });
    expect(failure).toBeInstanceOf(MailDelayed);
    expect(failure.message).toMatch(/greeting/i);
  });

  test("falls silent after the content: given up in bounded time", async () => {
    await using sink = await startSmtpSink();
    sink.behave(() => ({ acceptAfterMs: 60_000 }));
    expect((await failureOf(sink.url)).message).toMatch(/timeout/i);
  });

  test("trickles a byte now and then: ended by the call's own bound, the connection closed", async () => {
    await using server = await startScriptedServer((socket) => {
      const trickle = setInterval(() => socket.write("220-still thinking\r\n"), 50);
      socket.once("close", () => clearInterval(trickle));
    });
    const patience = { connectMs: 60_000, greetingMs: 60_000, idleMs: 60_000 };
    expect(await failureOf(server.url, { signal: AbortSignal.timeout(300), patience })).toBeInstanceOf(
      MailDelayed,
    );
    await eventually(() => server.open() === 0);
  });

  test("accepts slowly but in time: has the mail", async () => {
    await using sink = await startSmtpSink();
    sink.behave(() => ({ acceptAfterMs: 100 }));
    const transport = createSmtpTransport(SmtpUrl.parse(sink.url), { ...quick, idleMs: 5_000 });
    await transport.send(exampleMail(), AbortSignal.timeout(10_000));
    expect(sink.mails).toHaveLength(1);
  });

  test("drops the connection in the middle of the content", async () => {
    await using server = await startScriptedServer((socket) =>
      answering(socket, [
        [/^DATA/, "354 go on\r\n"],
        [/^(From|Auto-Submitted): /m, () => socket.destroy()],
      ]),
    );
    expect(await failureOf(server.url)).toBeInstanceOf(MailDelayed);
  });

  test("drops the connection instead of the last answer", async () => {
    await using sink = await startSmtpSink();
    sink.behave(() => "drop");
    expect(await failureOf(sink.url)).toBeInstanceOf(MailDelayed);
  });

  test("talks nonsense", async () => {
    await using server = await startScriptedServer((socket) =>
      socket.end("HTTP/1.1 400 Bad Request\r\n\r\n"),
    );
    expect(await failureOf(server.url)).toBeInstanceOf(MailDelayed);
  });
});

describe("TLS towards an SMTP server", () => {
  const signal = AbortSignal.timeout(30_000);

  test("is used where the server offers it", async () => {
    await using sink = await startSmtpSink({ tls: "starttls", login });
    await createSmtpTransport(SmtpUrl.parse(withLogin(sink.url))).send(exampleMail(), signal);
    expect(sink.mails).toMatchObject([{ encrypted: true }]);
  });

  test("is spoken from the first byte with smtps", async () => {
    await using sink = await startSmtpSink({ tls: "implicit" });
    await createSmtpTransport(SmtpUrl.parse(sink.url)).send(exampleMail(), signal);
    expect(sink.mails).toMatchObject([{ encrypted: true }]);
  });

  test("is left alone with starttls=off", async () => {
    await using sink = await startSmtpSink({ tls: "starttls" });
    await createSmtpTransport(SmtpUrl.parse(`${sink.url}?starttls=off`)).send(exampleMail(), signal);
    expect(sink.mails).toMatchObject([{ encrypted: false }]);
  });

  test("that is required but not offered keeps mail and password back", async () => {
    await using sink = await startSmtpSink({ login });
    expect(await failureOf(`${withLogin(sink.url)}?starttls=required`)).toBeInstanceOf(MailDelayed);
    expect(sink.attempts).toEqual([]);
  });

  test("that is required comes with a certificate the machine trusts", async () => {
    const trusted = getCACertificates("default");
    setDefaultCACertificates([...trusted, testCertificate.cert]);
    try {
      await using sink = await startSmtpSink({ tls: "starttls", login });
      await createSmtpTransport(SmtpUrl.parse(`${withLogin(sink.url)}?starttls=required`)).send(
        exampleMail(),
        signal,
      );
      expect(sink.mails).toMatchObject([{ encrypted: true }]);
    } finally {
      setDefaultCACertificates(trusted);
    }
  });

  test("that is required with a certificate nobody vouches for keeps mail and password back", async () => {
    await using sink = await startSmtpSink({ tls: "starttls", login });
    const failure = await failureOf(`${withLogin(sink.url)}?starttls=required`);
    expect(failure).toBeInstanceOf(MailDelayed);
    expect(failure.message).toMatch(/certificate/);
    expect(sink.attempts).toEqual([]);
  });
});
