import { z } from "zod";

/** TLS with a valid certificate or nothing sent; TLS if offered; never TLS. */
type StartTls = "required" | "opportunistic" | "off";

/** The SMTP server of `SMTP_URL`. */
export interface SmtpServer {
  readonly host: string;
  readonly port: number;
  /** TLS from the first byte (`smtps://`). */
  readonly implicitTls: boolean;
  readonly startTls: StartTls;
  /** Whether the certificate must be valid for the host. */
  readonly verifyCertificate: boolean;
  readonly credentials: { readonly user: string; readonly password: string } | null;
}

const form =
  "must be smtp://HOST[:PORT] or smtps://HOST[:PORT], with USER:PASSWORD@ before the host or without";

/** `SMTP_URL` (README, Environment). No message of this schema repeats the URL, which holds a password. */
export const SmtpUrl = z.string().transform((text, context): SmtpServer => {
  const outcome = parseSmtpUrl(text);
  if (typeof outcome !== "string") return outcome;
  context.addIssue({ code: "custom", message: outcome });
  return z.NEVER;
});

function parseSmtpUrl(text: string): SmtpServer | string {
  const url = URL.parse(text);
  if (!url || !["smtp:", "smtps:"].includes(url.protocol) || url.hostname === "") return form;
  if (!["", "/"].includes(url.pathname) || url.hash !== "") return form;
  for (const name of url.searchParams.keys())
    if (name !== "starttls") return "takes no parameter but starttls";

  const credentials = credentialsOf(url);
  if (credentials === "unreadable") return "holds a user or password that is not percent-encoded correctly";
  if (credentials === "incomplete") return "must hold both a user and a password, or neither";
  const implicitTls = url.protocol === "smtps:";
  const local = /^(localhost|127(\.\d+){3}|\[::1\])$/.test(url.hostname);
  const asked = url.searchParams.get("starttls");
  if (asked !== null && implicitTls) return "starttls has no meaning for smtps";
  if (asked !== null && !isStartTls(asked)) return "starttls must be required, opportunistic or off";
  const startTls = asked ?? (credentials && !local ? "required" : "opportunistic");
  return {
    host: url.hostname.replace(/^\[|\]$/g, ""),
    port: url.port === "" ? (implicitTls ? 465 : 587) : Number(url.port),
    implicitTls,
    startTls,
    // An attacker could strip an opportunistic STARTTLS, so a check would protect nothing (RFC 7435).
    verifyCertificate: implicitTls ? !local : startTls === "required",
    credentials,
  };
}

function credentialsOf(url: URL): SmtpServer["credentials"] | "unreadable" | "incomplete" {
  if (url.username === "" && url.password === "") return null;
  if (url.username === "" || url.password === "") return "incomplete";
  try {
    return { user: decodeURIComponent(url.username), password: decodeURIComponent(url.password) };
  } catch {
    return "unreadable";
  }
}

function isStartTls(text: string): text is StartTls {
  return text === "required" || text === "opportunistic" || text === "off";
}
