import { z } from "zod";

/** A word of `atext` and of visible characters beyond ASCII (RFC 5322, 3.2.3; RFC 6531, 3.3). */
const word = /^([a-z0-9!#$%&'*+/=?^_`{|}~-]|[^\p{ASCII}\p{C}\p{Z}])+$/u;

/** Bytes of the part before the `@`, and of the whole address (RFC 5321, 4.5.3.1). */
const [maxLocalBytes, maxBytes] = [64, 254];

/** A host name of two labels or more (RFC 1123, 2.1), the last a word or the ASCII form of one. */
const domain = /^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+([a-z]{2,63}|xn--[a-z0-9-]{0,58}[a-z0-9])$/;

function isEmailAddress(text: string): boolean {
  const at = text.lastIndexOf("@");
  const local = text.slice(0, Math.max(at, 0));
  if (bytesOf(local) > maxLocalBytes || bytesOf(text) > maxBytes) return false;
  return local.split(".").every((one) => word.test(one)) && domain.test(text.slice(at + 1));
}

const bytesOf = (text: string) => new TextEncoder().encode(text).length;

/** Whether an address has letters beyond ASCII, which only some mail servers take (SMTPUTF8, RFC 6531). */
export function isInternational(address: string): boolean {
  return /[^\p{ASCII}]/u.test(address);
}

/** The address with its domain in ASCII (UTS 46), where it has such a form. */
function withAsciiDomain(text: string): string {
  const at = text.lastIndexOf("@") + 1;
  const name = text.slice(at);
  // What is more than letters, digits, dots and hyphens could mean something else in a URL.
  if (/^[a-z0-9.-]*$/.test(name) || !/^[\p{L}\p{M}\p{N}.-]+$/u.test(name)) return text;
  return text.slice(0, at) + (URL.parse(`http://${name}`)?.hostname ?? name);
}

/**
 * An e-mail address, trimmed, in lower case, composed (NFC) and with its domain in ASCII. The part before the `@` must
 * be unquoted, and may have letters beyond ASCII.
 */
export const EmailAddress = z
  .string()
  .trim()
  .toLowerCase()
  .max(maxBytes)
  .transform((text) => withAsciiDomain(text.normalize("NFC")))
  .pipe(z.string().max(maxBytes).refine(isEmailAddress, "Invalid email address"))
  .meta({
    type: "string",
    format: "email",
    description: "E-mail address; blanks around it and upper case do not count.",
    example: "ann@example.com",
  });
