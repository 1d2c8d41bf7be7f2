import { describe, expect, test } from "@jest/globals";
import { type Invitation, writeInvitation } from "../src/invitation.ts";

function invitation(changes: Partial<Invitation> = {}): Invitation {
  return {
    token: "ck_00000000000000000000000000000000",
    confirmation: "abc",
    expiresAt: new Date("2026-01-08T09:05:00.000Z"),
    publicUrl: new URL("https://devices.example.com"),
    ...changes,
  };
}

describe("an invitation", () => {
  test("holds link, token and expiry in text and HTML alike", () => {
    const { subject, text, html } = writeInvitation(invitation());
    expect(subject).toBe("Your invitation to Devmesh at devices.example.com");
    for (const body of [text, html]) {
      expect(body).toContain("https://devices.example.com/confirm?token=abc");
      expect(body).toContain("ck_00000000000000000000000000000000");
      expect(body).toContain("before 8 January 2026, 09:05 UTC");
    }
  });

  test("leads below the path of the public URL, with or without a slash at its end", () => {
    for (const publicUrl of ["http://127.0.0.1:8080/mesh", "http://127.0.0.1:8080/mesh/"]) {
      const { text } = writeInvitation(invitation({ publicUrl: new URL(publicUrl) }));
      expect(text).toContain("\nhttp://127.0.0.1:8080/mesh/confirm?token=abc\n");
      expect(text).toContain("\nhttp://127.0.0.1:8080/mesh/api/v2/customer\n");
    }
  });

  test("encodes whatever a confirmation consists of", () => {
    const { text, html } = writeInvitation(invitation({ confirmation: `a&b=c#"<>\r\nx` }));
    expect(text).toContain("/confirm?token=a%26b%3Dc%23%22%3C%3E%0D%0Ax\n");
    expect(html).toContain('href="https://devices.example.com/confirm?token=a%26b%3Dc%23%22%3C%3E%0D%0Ax"');
  });

  test("lets nothing become markup", () => {
    const hostile = `"><script>alert('x')</script>&amp;`;
    const { html } = writeInvitation(invitation({ token: hostile }));
    expect(html).not.toContain("<script>");
    expect(html).toContain("&quot;&gt;&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&amp;amp;");
  });

  test("keeps its own lines of text short and ASCII, so that they travel unencoded", () => {
    const { text } = writeInvitation(invitation());
    expect(text).toMatch(/^[\x20-\x7e\n]*$/);
    for (const line of text.split("\n")) expect(line.length).toBeLessThanOrEqual(76);
  });
});
