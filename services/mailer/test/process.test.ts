import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { eventually } from "@devmesh/testkit/eventually";
import { type SpawnedService, spawnService } from "@devmesh/testkit/service-process";
import { startSmtpSink } from "@devmesh/testkit/smtp-sink";
import { tempFolder } from "@devmesh/testkit/temp-folder";
import { afterEach, describe, expect, test } from "@jest/globals";
import PostalMime from "postal-mime";
import { customerToken, openMailRoom, testCall } from "./mail-room.ts";

const running = new Set<SpawnedService>();

afterEach(async () => {
  for (const mailer of running) await mailer.end("SIGKILL");
  running.clear();
});

function startMailer(env: Record<string, string>): SpawnedService {
  const mailer = spawnService("mailer", {
    PUBLIC_URL: "http://127.0.0.1:8080",
    LOG_LEVEL: "trace",
    ...env,
  });
  running.add(mailer);
  return mailer;
}

describe("the mailer's process", () => {
  test("writes mails as files while no SMTP server is set", async () => {
    await using room = await openMailRoom();
    await using folder = await tempFolder();
    await room.openKeys();
    await room.invite("ann");
    startMailer({ NATS_URL: room.server.url, OUTBOX_DIR: folder.path });
    const [name = ""] = await eventually(async () => {
      const names = (await readdir(folder.path)).filter((file) => file.endsWith(".eml"));
      return names.length > 0 ? names : null;
    });
    const mail = await PostalMime.parse(await readFile(join(folder.path, name), "utf8"));
    expect(mail.to).toMatchObject([{ address: "ann@example.com" }]);
    expect(mail.from).toMatchObject({ name: "Devmesh", address: "no-reply@[127.0.0.1]" });
    expect(mail.text).toContain("http://127.0.0.1:8080/confirm?token=confirm-ann");
    expect(mail.text).toContain(customerToken);
    expect((await room.mailer.readQueue({}, testCall())).delivery).toBe("files");
  });

  test("killed in the middle of a mail leaves it to the next process, which names it alike", async () => {
    await using room = await openMailRoom();
    await using sink = await startSmtpSink();
    await room.openKeys();
    sink.behave(({ number }) => (number === 1 ? { acceptAfterMs: 1_000 } : "accept"));
    const env = { NATS_URL: room.server.url, SMTP_URL: sink.url };
    const first = startMailer(env);
    await room.invite("ann");
    await eventually(() => sink.attempts.length === 1);
    await first.end("SIGKILL");
    await room.invite("bob");
    await room.server.restart();
    startMailer(env);
    await eventually(async () => (await room.mailer.readQueue({}, testCall())).waiting === 0);
    const mails = Map.groupBy(sink.mails, ({ to }) => to[0]);
    expect([...mails.keys()].sort()).toEqual(["ann@example.com", "bob@example.com"]);
    for (const copies of mails.values()) {
      expect(new Set(copies.map(({ content }) => content.messageId)).size).toBe(1);
    }
  });

  test("keeps dead mail over restarts of itself and of the broker, and sends it on a retry", async () => {
    await using room = await openMailRoom();
    await using sink = await startSmtpSink();
    await room.openKeys();
    sink.refuseRecipients(() => 550);
    const env = { NATS_URL: room.server.url, SMTP_URL: sink.url };
    const first = startMailer(env);
    await room.invite("ann");
    await eventually(async () => (await room.mailer.readQueue({}, testCall())).dead === 1);
    expect(await first.end()).toBe(0);
    await room.server.restart();
    sink.refuseRecipients(() => null);
    startMailer(env);
    const { items } = await eventually(() => room.mailer.listDeadMail({}, testCall()));
    expect(items).toMatchObject([{ customer_id: "ann", attempts: 1 }]);
    await room.mailer.retryDeadMail({ id: items[0]?.id ?? "" }, testCall());
    expect((await sink.awaitMail()).to).toEqual(["ann@example.com"]);
  });

  test("when stopped finishes the mail under way and takes no other", async () => {
    await using room = await openMailRoom();
    await using sink = await startSmtpSink();
    await room.openKeys();
    sink.behave(() => ({ acceptAfterMs: 1_000 }));
    const { end } = startMailer({ NATS_URL: room.server.url, SMTP_URL: sink.url });
    await room.invite("ann");
    await eventually(() => sink.attempts.length === 1);
    expect(await end()).toBe(0);
    expect(sink.mails).toHaveLength(1);
    expect(sink.attempts).toHaveLength(1);
  });

  test("when stopped cuts off a mail that the server does not take, well before it would be ended itself", async () => {
    await using room = await openMailRoom();
    await using sink = await startSmtpSink();
    await room.openKeys();
    sink.behave(() => ({ acceptAfterMs: 60_000 }));
    const env = { NATS_URL: room.server.url, SMTP_URL: sink.url, DRAIN_MS: "200" };
    const { end, output } = startMailer(env);
    await room.invite("ann");
    await eventually(() => sink.attempts.length === 1);
    expect(await end()).toBe(0);
    expect(output()).toContain("SMTP EABORT");
    expect(sink.mails).toEqual([]);
  });

  test("names in its lines about a mail the trace of the request that led to it", async () => {
    await using room = await openMailRoom();
    await using sink = await startSmtpSink();
    await room.openKeys();
    let refusals = 0;
    sink.refuseRecipients(() => (refusals++ === 0 ? 450 : null));
    const { output } = startMailer({ NATS_URL: room.server.url, SMTP_URL: sink.url });
    using call = testCall();
    room.customers.set("ann", "ann@example.com");
    await room.producer.enqueue({ kind: "invitation", customer_id: "ann" }, { call });
    await sink.awaitMail();
    for (const msg of ["a job failed and will be tried again", "a mail was sent"]) {
      const line = await eventually(() =>
        output()
          .split("\n")
          .find((text) => text.includes(msg)),
      );
      expect(JSON.parse(line)).toMatchObject({ msg, trace_id: call.trace.traceId });
    }
  });

  test("never writes the password of its SMTP server, even where the login fails", async () => {
    await using room = await openMailRoom();
    await using sink = await startSmtpSink({ login: { user: "mailer", password: "another" } });
    await room.openKeys();
    const password = "hunter2-hunter2";
    const { end, output } = startMailer({
      NATS_URL: room.server.url,
      SMTP_URL: sink.url.replace("//", `//mailer:${password}@`),
    });
    await room.invite("ann");
    await eventually(() => output().includes("535"));
    await end();
    expect(output()).not.toContain(password);
    expect(output()).not.toContain(Buffer.from(`\0mailer\0${password}`).toString("base64"));
    expect(output()).not.toContain(customerToken);
    expect(output()).not.toContain("confirm-ann");
  });

  test.each([
    [{ SMTP_URL: "smtp://mailer:hunter2@" }, "SMTP_URL"],
    [{ SMTP_URL: "smtp://mailer:hunter2@h", PUBLIC_URL: "nowhere" }, "PUBLIC_URL"],
    [{}, "OUTBOX_DIR"],
    [{ OUTBOX_DIR: "/tmp", MAIL_FROM: "nobody" }, "MAIL_FROM"],
  ])("with a wrong environment ends with code 1 and names the variable: %j", async (env, variable) => {
    const { ended, output } = startMailer(env as Record<string, string>);
    expect(await ended).toBe(1);
    expect(output()).toContain(variable);
    expect(output()).not.toContain("hunter2");
  });
});
