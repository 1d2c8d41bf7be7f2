import { z } from "zod";

/** An address of a header: the display name may be empty. */
export interface MailAddress {
  readonly name: string;
  readonly address: string;
}

/** One `ann@example.com` or `Ann Example <ann@example.com>`, without control characters. */
export const MailAddressText = z.string().transform((text, context): MailAddress => {
  const parsed = parseMailAddress(text);
  if (parsed) return parsed;
  context.addIssue({
    code: "custom",
    message: "must be one address, for example Devmesh <no-reply@example.com>",
  });
  return z.NEVER;
});

/** The sender when none is configured. */
export function defaultSender(publicUrl: URL): MailAddress {
  return { name: "Devmesh", address: `no-reply@${mailDomainOf(publicUrl)}` };
}

/** The host of a URL as the right side of an address or a Message-ID: IP addresses as literals (RFC 5321, 4.1.3). */
export function mailDomainOf(url: URL): string {
  if (url.hostname.startsWith("[")) return `[IPv6:${url.hostname.slice(1, -1)}]`;
  return /^\d+(\.\d+){3}$/.test(url.hostname) ? `[${url.hostname}]` : url.hostname;
}

function parseMailAddress(text: string): MailAddress | null {
  if (/\p{Cc}/u.test(text)) return null;
  const { name = "", address = text.trim() } =
    /^(?<name>[^<>]*)<(?<address>[^<>]+)>\s*$/.exec(text)?.groups ?? {};
  if (!/^[^\s@<>,;:"()]+@([^\s@<>,;:"()[\]]+|\[[0-9A-Za-z.:]+\])$/.test(address)) return null;
  return { name: name.trim().replace(/^"(.*)"$/, "$1"), address };
}
