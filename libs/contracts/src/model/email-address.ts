import { z } from "zod";

/** Words of `atext` with single dots between (RFC 5322, 3.2.3), 64 characters at most (RFC 5321, 4.5.3.1.1). */
const localPart = /^(?=.{1,64}$)[a-z0-9!#$%&'*+/=?^_`{|}~-]+(\.[a-z0-9!#$%&'*+/=?^_`{|}~-]+)*$/;

/** A host name of two labels or more (RFC 1123, 2.1), the last a word or the ASCII form of one. */
const domain = /^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+([a-z]{2,63}|xn--[a-z0-9-]{0,58}[a-z0-9])$/;

function isEmailAddress(text: string): boolean {
  const at = text.lastIndexOf("@");
  return localPart.test(text.slice(0, Math.max(at, 0))) && domain.test(text.slice(at + 1));
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
 * An e-mail address, trimmed, in lower case and with its domain in ASCII. The local part must be ASCII and unquoted.
 */
export const EmailAddress = z
  .string()
  .trim()
  .toLowerCase()
  .max(254)
  .transform(withAsciiDomain)
  .pipe(z.string().max(254).refine(isEmailAddress, "Invalid email address"))
  .meta({
    type: "string",
    format: "email",
    description: "E-mail address; blanks around it and upper case do not count.",
    example: "ann@example.com",
  });
