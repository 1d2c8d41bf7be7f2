import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import PostalMime from "postal-mime";
import { writeInvitation } from "../src/invitation.ts";
import type { Mail, MailTransport } from "../src/transport.ts";

/** Where a transport under test delivers to. */
export interface Destination extends AsyncDisposable {
  readonly transport: MailTransport;
  /** The sources of all mails that arrived, oldest first. */
  arrived(): Promise<readonly string[]>;
}

/** A mail as the mailer writes it, for tests; each has its own id. */
export function exampleMail(changes: Partial<Mail> = {}): Mail {
  const id = crypto.randomUUID();
  return {
    id,
    messageId: `<${id}@devices.example.com>`,
    queuedAt: new Date("2026-01-01T12:00:00.000Z"),
    from: { name: "Devmesh", address: "no-reply@devices.example.com" },
    to: "ann@example.com",
    secrets: ["ck_00000000000000000000000000000000", "confirm-me"],
    ...writeInvitation({
      token: "ck_00000000000000000000000000000000",
      confirmation: "confirm-me",
      expiresAt: new Date("2026-01-08T12:00:00.000Z"),
      publicUrl: new URL("https://devices.example.com"),
    }),
    ...changes,
  };
}

/** What every {@link MailTransport} must do. */
export function mailTransportSuite(name: string, open: () => Promise<Destination>): void {
  describe(`mail over ${name}`, () => {
    let destination: Destination;

    beforeAll(async () => {
      destination = await open();
    });

    afterAll(async () => {
      await destination[Symbol.asyncDispose]();
    });

    async function deliver(mail: Mail) {
      const before = (await destination.arrived()).length;
      await destination.transport.send(mail, AbortSignal.timeout(10_000));
      const sources = await destination.arrived();
      expect(sources).toHaveLength(before + 1);
      const source = sources.find((text) => text.includes(mail.messageId)) ?? "";
      return { source, content: await PostalMime.parse(source) };
    }

    test("arrives as text and HTML with its link and token", async () => {
      const { content } = await deliver(exampleMail());
      expect(content.from).toMatchObject({ name: "Devmesh", address: "no-reply@devices.example.com" });
      expect(content.to).toMatchObject([{ address: "ann@example.com" }]);
      expect(content.subject).toBe("Your invitation to Devmesh at devices.example.com");
      expect(content.text).toContain("https://devices.example.com/confirm?token=confirm-me\n");
      expect(content.text).toContain("ck_00000000000000000000000000000000");
      expect(content.html).toContain('<a href="https://devices.example.com/confirm?token=confirm-me">');
      expect(content.html).toContain("<code>ck_00000000000000000000000000000000</code>");
    });

    test("arrives at an address with letters beyond ASCII", async () => {
      const { source } = await deliver(exampleMail({ to: "jörg+x@xn--mnchen-3ya.de" }));
      expect(source).toMatch(/^To: <?jörg\+x@(münchen|xn--mnchen-3ya)\.de>?\r?$/m);
    });

    test("keeps letters beyond ASCII, in headers and both bodies", async () => {
      const { content } = await deliver(
        exampleMail({
          from: { name: "Gerätewolke 🌧", address: "no-reply@devices.example.com" },
          subject: "Einladung für Zoë",
          text: "Grüße – 你好\n",
          html: "<p>Grüße – 你好</p>",
        }),
      );
      expect(content.from?.name).toBe("Gerätewolke 🌧");
      expect(content.subject).toBe("Einladung für Zoë");
      expect(content.text?.trim()).toBe("Grüße – 你好");
      expect(content.html?.trim()).toBe("<p>Grüße – 你好</p>");
    });

    test("carries the Message-ID it was given and says that no person wrote it", async () => {
      const mail = exampleMail();
      const { content } = await deliver(mail);
      expect(content.messageId).toBe(mail.messageId);
      expect(content.headers).toContainEqual(
        expect.objectContaining({ key: "auto-submitted", value: "auto-generated" }),
      );
    });

    test("adds no header and no recipient through a line break or a comma", async () => {
      const { content } = await deliver(
        exampleMail({
          subject: "Hello\r\nBcc: eve@example.com\r\n\r\nBody",
          from: { name: 'Ann"\r\nBcc: eve@example.com', address: "no-reply@devices.example.com" },
        }),
      );
      expect(content.bcc ?? []).toEqual([]);
      expect(content.to).toHaveLength(1);
      expect(content.subject).toContain("Hello");
    });

    test("keeps a line that is a single dot", async () => {
      const { content } = await deliver(exampleMail({ text: "before\n.\nafter\n" }));
      expect(content.text?.trim()).toBe("before\n.\nafter");
    });

    test("leaves link and token readable in the source, as text and as HTML", async () => {
      const confirmation = `${crypto.randomUUID()}.${"x-_".repeat(14)}z`;
      const token = "ck_00000000000000000000000000000000";
      const expiresAt = new Date("2026-01-08T12:00:00.000Z");
      const publicUrl = new URL("https://devices.example.com/a/path/of/some/length");
      const { source, content } = await deliver(
        exampleMail(writeInvitation({ token, confirmation, expiresAt, publicUrl })),
      );
      const link = `${publicUrl}/confirm?token=${confirmation}`;
      expect(source).toContain(`\r\n${link}\r\n`);
      expect(source).toContain(`<a href="${link}">`);
      expect(source).toContain(`\r\n${token}\r\n`);
      expect(content.text).toContain(`\n${link}\n`);
      expect(content.html).toContain(`<a href="${link}">`);
    });

    test("encodes lines that are too long for mail", async () => {
      const long = "a".repeat(2_000);
      const { source, content } = await deliver(exampleMail({ text: `${long}\n`, html: `<p>${long}</p>` }));
      for (const line of source.split("\r\n")) expect(line.length).toBeLessThanOrEqual(998);
      expect(content.text?.trim()).toBe(long);
      expect(content.html?.trim()).toBe(`<p>${long}</p>`);
    });

    test("sends nothing for a call that has ended", async () => {
      const before = (await destination.arrived()).length;
      await expect(destination.transport.send(exampleMail(), AbortSignal.abort())).rejects.toThrow();
      expect(await destination.arrived()).toHaveLength(before);
    });
  });
}
