import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { ManualClock } from "@devmesh/service-kit/testing/manual-clock";
import { eventually } from "@devmesh/testkit/eventually";
import { startSmtpSink } from "@devmesh/testkit/smtp-sink";
import { describe, expect, test } from "@jest/globals";
import { SmtpUrl } from "../src/smtp-url.ts";
import { createSmtpTransport } from "../src/transport.smtp.ts";
import { customerToken, openMailRoom, refusalOf, testCall } from "./mail-room.ts";

const patient = { connectMs: 10_000, greetingMs: 10_000, idleMs: 10_000 };

/** A broker with `keys`, and an SMTP server with the way to it. */
async function openOffice(patience = patient, options: Parameters<typeof startSmtpSink>[0] = {}) {
  const stack = new AsyncDisposableStack();
  const room = stack.use(await openMailRoom());
  const sink = stack.use(await startSmtpSink(options));
  await room.openKeys();
  const transport = createSmtpTransport(SmtpUrl.parse(sink.url), patience);
  return { room, sink, transport, [Symbol.asyncDispose]: () => stack.disposeAsync() };
}

type Room = Awaited<ReturnType<typeof openMailRoom>>;

async function awaitCounts(room: Room, waiting: number, dead: number) {
  await eventually(async () => {
    expect(await room.mailer.readQueue({}, testCall())).toEqual({ waiting, dead, delivery: "smtp" });
    return true;
  });
}

describe("a queued invitation", () => {
  test("is sent to its customer with link, token and sender, and leaves the queue", async () => {
    await using office = await openOffice();
    const { room, sink, transport } = office;
    await using _mailer = await room.openMailer(transport);
    await room.invite("ann");
    const { content, to, from } = await sink.awaitMail();
    expect({ to, from }).toEqual({ to: ["ann@example.com"], from: "no-reply@devices.example.com" });
    expect(content.text).toContain("https://devices.example.com/confirm?token=confirm-ann\n");
    expect(content.text).toContain(customerToken);
    expect(content.text).toContain("8 January 2026, 12:00 UTC");
    await awaitCounts(room, 0, 0);
  });

  test("of a customer who is gone meanwhile is done without a mail", async () => {
    await using office = await openOffice();
    const { room, sink, transport } = office;
    await room.producer.enqueue({ kind: "invitation", customer_id: "gone" });
    await using _mailer = await room.openMailer(transport);
    await awaitCounts(room, 0, 0);
    expect(sink.attempts).toEqual([]);
  });

  test("waits for `keys` to come back", async () => {
    await using room = await openMailRoom();
    await using sink = await startSmtpSink();
    const transport = createSmtpTransport(SmtpUrl.parse(sink.url));
    await using mailer = await room.openMailer(transport, { backoffMs: Array(100).fill(50) });
    await room.invite("ann");
    await eventually(async () =>
      (await mailer.metrics.registry.metrics()).includes(
        'devmesh_job_attempts_total{queue="mail",outcome="failed"}',
      ),
    );
    await room.openKeys();
    expect((await sink.awaitMail()).to).toEqual(["ann@example.com"]);
  });

  test("leaves no secret of the customer in the broker's files, neither waiting nor given up", async () => {
    await using office = await openOffice();
    const { room, sink, transport } = office;
    sink.behave(() => ({ refuse: 554, message: `not wanted: ${customerToken} confirm-ann` }));
    await using _mailer = await room.openMailer(transport);
    await room.invite("ann");
    await awaitCounts(room, 0, 1);
    const files = await readdir(room.server.storeDir, { recursive: true, withFileTypes: true });
    const contents = await Promise.all(
      files
        .filter((entry) => entry.isFile())
        .map((entry) => readFile(join(entry.parentPath, entry.name), "latin1")),
    );
    expect(contents.some((content) => content.includes("customer_id"))).toBe(true);
    expect(contents.filter((content) => content.includes(customerToken))).toEqual([]);
    expect(contents.filter((content) => content.includes("confirm-ann"))).toEqual([]);
  });
});

describe("a mail that cannot be sent now", () => {
  test("is tried again after each declared wait until it is taken", async () => {
    await using office = await openOffice();
    const { room, sink, transport } = office;
    sink.behave(({ number }) => (number <= 2 ? { refuse: 451 } : "accept"));
    await using _mailer = await room.openMailer(transport);
    await room.invite("ann");
    await sink.awaitMail();
    await awaitCounts(room, 0, 0);
    expect(sink.attempts).toHaveLength(3);
  });

  test("becomes a dead letter after the last wait", async () => {
    await using office = await openOffice();
    const { room, sink, transport } = office;
    sink.behave(() => ({ refuse: 451, message: "come back later" }));
    await using _mailer = await room.openMailer(transport, { backoffMs: [20, 20, 20] });
    await room.invite("ann");
    await awaitCounts(room, 0, 1);
    expect(sink.attempts).toHaveLength(4);
    const { items } = await room.mailer.listDeadMail({}, testCall());
    expect(items).toMatchObject([
      {
        kind: "invitation",
        customer_id: "ann",
        attempts: 4,
        last_error: expect.stringContaining("come back later"),
      },
    ]);
  });

  test("bears the same Message-ID when a slow server has taken it twice", async () => {
    await using office = await openOffice({ ...patient, idleMs: 300 });
    const { room, sink, transport } = office;
    sink.behave(({ number }) => (number === 1 ? { acceptAfterMs: 900 } : "accept"));
    await using _mailer = await room.openMailer(transport);
    await room.invite("ann");
    await room.invite("bob");
    await eventually(() => sink.mails.length === 3);
    expect(new Set(sink.mails.map(({ content }) => content.messageId)).size).toBe(2);
    for (const { content } of sink.mails)
      expect(content.messageId).toMatch(/^<invitation\.\d+-\d+@devices\.example\.com>$/);
  });

  test("to a server that never answers is cut off when the attempt's time is over", async () => {
    await using office = await openOffice();
    const { room, sink, transport } = office;
    sink.behave(() => ({ acceptAfterMs: 600_000 }));
    const backoffMs = Array<number>(10_000).fill(20);
    await using _mailer = await room.openMailer(transport, { backoffMs, attemptMs: 1_000 });
    await room.invite("ann");
    // An attempt begins when the one before has ended, whether that reached the server in its time or not.
    await eventually(() => sink.attempts.length >= 2);
    expect(sink.mails).toEqual([]);
  });

  test("to such a server is given up when the time of its last attempt is over", async () => {
    await using office = await openOffice();
    const { room, sink, transport } = office;
    sink.behave(() => ({ acceptAfterMs: 600_000 }));
    await using _mailer = await room.openMailer(transport, { backoffMs: [20], attemptMs: 300 });
    await room.invite("ann");
    await awaitCounts(room, 0, 1);
    const { items } = await room.mailer.listDeadMail({}, testCall());
    expect(items).toMatchObject([{ customer_id: "ann", attempts: 2 }]);
  });

  test("holds up nobody else's", async () => {
    await using office = await openOffice();
    const { room, sink, transport } = office;
    sink.behave(({ to }) => (to.includes("slow@example.com") ? { acceptAfterMs: 60_000 } : "accept"));
    await using _mailer = await room.openMailer(transport, { backoffMs: [], attemptMs: 3_000 });
    await room.invite("slow");
    await eventually(() => sink.attempts.length === 1);
    await room.invite("ann");
    expect((await sink.awaitMail()).to).toEqual(["ann@example.com"]);
    await awaitCounts(room, 1, 0);
  });
});

describe("a mailer that is stopped", () => {
  test("cuts off a mail that takes too long; it stays queued", async () => {
    await using office = await openOffice();
    const { room, sink, transport } = office;
    sink.behave(() => ({ acceptAfterMs: 60_000 }));
    const clock = new ManualClock();
    await using mailer = await room.openMailer(transport, { backoffMs: [60_000], attemptMs: 60_000, clock });
    await room.invite("ann");
    await eventually(() => sink.attempts.length === 1);
    const stopping = mailer.stopDeliveries();
    await clock.advance(14_999);
    expect(await room.mailer.readQueue({}, testCall())).toMatchObject({ waiting: 1, dead: 0 });
    expect(clock.pending).toBe(1);
    await clock.advance(1);
    await stopping;
    expect(await room.mailer.readQueue({}, testCall())).toMatchObject({ waiting: 1, dead: 0 });
    expect(sink.mails).toEqual([]);
  });
});

describe("a mail that is refused for good", () => {
  test("becomes a dead letter at once and is sent when somebody retries it after the cause is gone", async () => {
    await using office = await openOffice();
    const { room, sink, transport } = office;
    sink.refuseRecipients((address) => (address === "ann@example.com" ? 550 : null));
    await using _mailer = await room.openMailer(transport, { backoffMs: [60_000] });
    await room.invite("ann");
    await awaitCounts(room, 0, 1);
    const { items } = await room.mailer.listDeadMail({}, testCall());
    expect(items).toMatchObject([
      { customer_id: "ann", attempts: 1, last_error: expect.stringContaining("550") },
    ]);

    sink.refuseRecipients(() => null);
    const [{ id } = { id: "" }] = items;
    await room.mailer.retryDeadMail({ id }, testCall());
    expect((await sink.awaitMail()).to).toEqual(["ann@example.com"]);
    await awaitCounts(room, 0, 0);
  });

  test("because the server takes no address beyond ASCII says so in the dead letters, also about alerts", async () => {
    await using office = await openOffice(patient, { utf8: false });
    const { room, sink, transport } = office;
    await using _mailer = await room.openMailer(transport, { backoffMs: [60_000] });
    await room.invite("ann", "änn@example.com");
    await room.alert("bereitschaft-süd@example.com");
    await room.alert("duty@example.com");
    await sink.awaitMail(({ to }) => to.includes("duty@example.com"));
    await awaitCounts(room, 0, 2);
    const { items } = await room.mailer.listDeadMail({}, testCall());
    const last_error = expect.stringContaining("does not offer SMTPUTF8");
    expect(items).toMatchObject([
      { customer_id: "ann", attempts: 1, last_error },
      { kind: null, attempts: 1, last_error },
    ]);
  });

  test("because the stored address is none is never offered to the server", async () => {
    await using office = await openOffice();
    const { room, sink, transport } = office;
    await using _mailer = await room.openMailer(transport, { backoffMs: [60_000] });
    await room.invite("ann", "ann@example.com>\r\nRCPT TO:<eve@example.com");
    await awaitCounts(room, 0, 1);
    expect(sink.attempts).toEqual([]);
  });
});

describe("mail of people and mail about alerts", () => {
  const isAlert = ({ to }: { readonly to: readonly string[] }) => to.some((one) => one.startsWith("alert-"));

  test.each([true, false])("wait for none of the other kind (alerts hang: %j)", async (alertsHang) => {
    await using office = await openOffice({ ...patient, idleMs: 60_000 });
    const { room, sink, transport } = office;
    sink.behave((mail) => (isAlert(mail) === alertsHang ? { acceptAfterMs: 60_000 } : "accept"));
    await using _mailer = await room.openMailer(transport, { attemptMs: 60_000, drainMs: 100 });
    // More than either kind sends at a time.
    for (let number = 0; number < 10; number++)
      await (alertsHang ? room.alert(`alert-${number}@example.com`) : room.invite(`person-${number}`));
    await eventually(() => sink.attempts.length > 0);
    await (alertsHang ? room.invite("ann") : room.alert("alert-of-ann@example.com"));
    await sink.awaitMail();
    expect(sink.mails.map(isAlert)).toEqual([!alertsHang]);
  });
});

describe("the metrics", () => {
  test("tell mails sent, attempts that failed, mails given up, and what waits", async () => {
    await using office = await openOffice();
    const { room, sink, transport } = office;
    sink.refuseRecipients((address) => (address === "bob@example.com" ? 550 : null));
    sink.behave(({ to, number }) => {
      if (to.includes("slow@example.com")) return { acceptAfterMs: 60_000 };
      return number === 1 ? { refuse: 451 } : "accept";
    });
    await using mailer = await room.openMailer(transport, { backoffMs: [20], attemptMs: 3_000 });
    await room.invite("ann");
    await sink.awaitMail();
    await room.invite("bob");
    await awaitCounts(room, 0, 1);
    await room.invite("slow");
    await awaitCounts(room, 1, 1);
    const metrics = await mailer.metrics.registry.metrics();
    expect(metrics).toContain("devmesh_mails_sent_total 1");
    expect(metrics).toContain('devmesh_job_attempts_total{queue="mail",outcome="failed"} 1');
    expect(metrics).toContain('devmesh_job_attempts_total{queue="mail",outcome="dead"} 1');
    expect(metrics).toContain('devmesh_mails{state="waiting"} 1');
    expect(metrics).toContain('devmesh_mails{state="dead"} 1');
  });

  test("leave out what nobody can count while the broker is away", async () => {
    await using office = await openOffice();
    const { room, transport } = office;
    await using mailer = await room.openMailer(transport);
    expect(await mailer.metrics.registry.metrics()).toContain('devmesh_mails{state="waiting"} 0');
    await room.server.kill();
    await eventually(async () =>
      (await mailer.metrics.registry.metrics()).includes('devmesh_bus_connected{user="mailer"} 0'),
    );
    expect(await mailer.metrics.registry.metrics()).not.toContain("devmesh_mails{");
    await room.server.restart();
  });
});

describe("dead mail", () => {
  test("is listed oldest first, in pages", async () => {
    await using office = await openOffice();
    const { room, sink, transport } = office;
    sink.refuseRecipients(() => 550);
    await using _mailer = await room.openMailer(transport);
    for (const [index, customer] of ["a", "b", "c"].entries()) {
      await room.invite(customer);
      await awaitCounts(room, 0, index + 1);
    }
    const first = await room.mailer.listDeadMail({ limit: 2 }, testCall());
    expect(first.items.map(({ customer_id }) => customer_id)).toEqual(["a", "b"]);
    const second = await room.mailer.listDeadMail({ limit: 2, after: first.next ?? "" }, testCall());
    expect(second).toMatchObject({ next: null, items: [{ customer_id: "c" }] });
    const whole = await room.mailer.listDeadMail({ limit: 3 }, testCall());
    expect(whole).toMatchObject({ next: null, items: { length: 3 } });
  });

  test("about alerts is listed after that of people, and sent again", async () => {
    await using office = await openOffice();
    const { room, sink, transport } = office;
    sink.refuseRecipients(() => 550);
    await using mailer = await room.openMailer(transport);
    await room.invite("ann");
    for (const [index, to] of ["on-call@example.com", "night@example.com"].entries()) {
      await room.alert(to);
      await awaitCounts(room, 0, index + 2);
    }
    expect(await mailer.metrics.registry.metrics()).toContain('devmesh_mails{state="dead"} 3');
    const found: unknown[] = [];
    for (let after: string | undefined; ; ) {
      const page = await room.mailer.listDeadMail(
        { limit: 1, ...(after !== undefined && { after }) },
        testCall(),
      );
      found.push(...page.items.map(({ kind, customer_id, to }) => [kind, customer_id, to]));
      if (page.next === null) break;
      after = page.next;
    }
    expect(found).toEqual([
      ["invitation", "ann", null],
      [null, null, "on-call@example.com"],
      [null, null, "night@example.com"],
    ]);
    const { items } = await room.mailer.listDeadMail({}, testCall());
    sink.refuseRecipients(() => null);
    await room.mailer.retryDeadMail({ id: items[1]?.id ?? "" }, testCall());
    expect((await sink.awaitMail()).to).toEqual(["on-call@example.com"]);
    await awaitCounts(room, 0, 2);
  });

  test.each(["x", "-1", "1.5", "a", "a01", "0", "1e3", "9".repeat(30), " 1", ""])(
    "has no cursor %j",
    async (after) => {
      await using office = await openOffice();
      await using _mailer = await office.room.openMailer(office.transport);
      expect(await refusalOf(office.room.mailer.listDeadMail({ after }, testCall()))).toBe("cursor_invalid");
      expect(await refusalOf(office.room.mailer.retryDeadMail({ id: after }, testCall()))).toBe(
        "mail_not_found",
      );
    },
  );

  test("retried by several at once is sent once", async () => {
    await using office = await openOffice();
    const { room, sink, transport } = office;
    sink.refuseRecipients(() => 550);
    await using _mailer = await room.openMailer(transport);
    await room.invite("ann");
    await awaitCounts(room, 0, 1);
    sink.refuseRecipients(() => null);
    const [{ id } = { id: "" }] = (await room.mailer.listDeadMail({}, testCall())).items;
    const retries = [1, 2, 3].map(() => room.mailer.retryDeadMail({ id }, testCall()));
    for (const retry of await Promise.allSettled(retries))
      if (retry.status === "rejected") expect(retry.reason).toMatchObject({ reason: "mail_not_found" });
    await sink.awaitMail();
    expect(await refusalOf(room.mailer.retryDeadMail({ id }, testCall()))).toBe("mail_not_found");
    await awaitCounts(room, 0, 0);
    expect(sink.mails).toHaveLength(1);
  });

  test("that another release queued in a form of its own is listed all the same", async () => {
    await using office = await openOffice();
    const { room, transport } = office;
    await room.enqueueForeign({ kind: "newsletter", list: 7 });
    await using _mailer = await room.openMailer(transport, { backoffMs: [] });
    await awaitCounts(room, 0, 1);
    const { items } = await room.mailer.listDeadMail({}, testCall());
    expect(items).toMatchObject([{ kind: null, customer_id: null, attempts: 1 }]);
  });
});
