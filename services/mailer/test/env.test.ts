import { readEnv } from "@devmesh/service-kit/process/env";
import { describe, expect, test } from "@jest/globals";
import { MailerEnv } from "../src/env.ts";
import { SmtpUrl } from "../src/smtp-url.ts";

const base = { PUBLIC_URL: "http://127.0.0.1:8080", OUTBOX_DIR: "/data/outbox" };

function problemsWith(env: Record<string, string>) {
  const reading = readEnv(MailerEnv, env);
  return "problems" in reading ? reading.problems.join("\n") : null;
}

describe("the mailer's environment", () => {
  test("needs a way out for mail, either one", () => {
    expect(problemsWith({ PUBLIC_URL: base.PUBLIC_URL })).toContain("OUTBOX_DIR");
    expect(problemsWith(base)).toBeNull();
    expect(problemsWith({ PUBLIC_URL: base.PUBLIC_URL, SMTP_URL: "smtp://mail.example.com" })).toBeNull();
  });

  test.each([
    "",
    "devices.example.com",
    "ftp://example.com",
    "https://u:p@example.com",
    "https://example.com?x=1",
  ])("refuses %j as public URL", (PUBLIC_URL) => {
    expect(problemsWith({ ...base, PUBLIC_URL })).toContain("PUBLIC_URL");
  });

  test.each([
    "http://user:hunter2@mail.example.com",
    "smtp://user:hunter2@",
    "smtp://user:hunter2@mail.example.com:99999",
    "smtp://user:hunter2@mail.example.com/path",
    "smtp://user:hunter2@mail.example.com?pool=true",
    "smtp://user:hunter2@mail.example.com?starttls=maybe",
    "smtps://user:hunter2@mail.example.com?starttls=off",
    "smtp://:hunter2@mail.example.com",
    "smtp://user@mail.example.com",
    "smtp://user:hunter2%E0%A4%A@mail.example.com",
    "hunter2",
  ])("refuses %j as SMTP server without repeating the password", (SMTP_URL) => {
    const problems = problemsWith({ ...base, SMTP_URL });
    expect(problems).toContain("SMTP_URL");
    expect(problems).not.toContain("hunter2");
  });
});

describe("SMTP_URL", () => {
  test.each([
    [
      "smtp://mail.example.com",
      { port: 587, implicitTls: false, startTls: "opportunistic", verifyCertificate: false },
    ],
    ["smtp://u:p@mail.example.com:25", { port: 25, startTls: "required", verifyCertificate: true }],
    [
      "smtp://u:p@mail.example.com?starttls=opportunistic",
      { startTls: "opportunistic", verifyCertificate: false },
    ],
    ["smtp://mail.example.com?starttls=required", { startTls: "required", verifyCertificate: true }],
    ["smtp://u:p@127.0.0.1:2525", { startTls: "opportunistic", verifyCertificate: false }],
    ["smtp://[::1]:2525", { host: "::1", port: 2525 }],
    ["smtps://u:p@mail.example.com", { port: 465, implicitTls: true, verifyCertificate: true }],
    ["smtps://localhost", { verifyCertificate: false }],
    [
      "smtp://me%40example.com:p%40%2F%C3%B6@h",
      { credentials: { user: "me@example.com", password: "p@/ö" } },
    ],
  ])("%s", (text, server) => {
    expect(SmtpUrl.parse(text)).toMatchObject(server);
  });
});
