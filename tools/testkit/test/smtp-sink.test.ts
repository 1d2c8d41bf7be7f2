import { connect } from "node:net";
import { describe, expect, test } from "@jest/globals";
import { type SmtpSink, startSmtpSink } from "../src/smtp-sink.ts";

/** Sends one mail by hand and returns the server's answer to its content; null when it hung up. */
function deliver(sink: SmtpSink, subject: string): Promise<string | null> {
  const steps = [
    "EHLO test",
    "MAIL FROM:<a@example.com>",
    "RCPT TO:<b@example.com>",
    "DATA",
    `Subject: ${subject}\r\n\r\nHello\r\n.`,
  ];
  return new Promise((resolve) => {
    const socket = connect(Number(new URL(sink.url).port), "127.0.0.1");
    let last = "";
    socket.setEncoding("utf8").on("data", (text: string) => {
      last = text.trim();
      if (/^\d{3}-[^\r]*$/m.test(last) && !/^\d{3} /m.test(last)) return;
      const step = steps.shift();
      if (step) socket.write(`${step}\r\n`);
      else {
        resolve(last);
        socket.end();
      }
    });
    socket.on("error", () => {});
    socket.on("close", () => resolve(null));
  });
}

describe("the SMTP sink", () => {
  test("keeps the mails it accepts, parsed", async () => {
    await using sink = await startSmtpSink();
    expect(await deliver(sink, "one")).toMatch(/^250/);
    const mail = await sink.awaitMail(({ content }) => content.subject === "one");
    expect(mail).toMatchObject({
      from: "a@example.com",
      to: ["b@example.com"],
      content: { text: "Hello\n" },
    });
  });

  test("refuses, delays and hangs up as it is told", async () => {
    await using sink = await startSmtpSink();
    sink.behave(({ number }) => {
      if (number === 1) return { refuse: 451 };
      if (number === 2) return { refuse: 550, message: "no such user" };
      return number === 3 ? "drop" : { acceptAfterMs: 50 };
    });
    expect(await deliver(sink, "x")).toMatch(/^451/);
    expect(await deliver(sink, "x")).toMatch(/^550 no such user/);
    expect(await deliver(sink, "x")).toBeNull();
    expect(await deliver(sink, "x")).toMatch(/^250/);
    expect(sink.mails).toHaveLength(1);
    expect(sink.attempts).toHaveLength(4);
  });

  test("refuses recipients as it is told, before any content", async () => {
    await using sink = await startSmtpSink();
    sink.refuseRecipients((address) => (address === "b@example.com" ? 550 : null));
    expect(await deliver(sink, "x")).not.toMatch(/^250/);
    expect(sink.attempts).toEqual([]);
  });

  test("takes no mail without the login it asks for", async () => {
    await using sink = await startSmtpSink({ login: { user: "ann", password: "right" } });
    expect(await deliver(sink, "x")).not.toMatch(/^250/);
    expect(sink.mails).toEqual([]);
  });
});
