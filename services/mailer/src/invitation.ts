import { escapeHtml } from "@devmesh/service-kit/escape-html";
import { type MailContent, spellTime } from "./mail-words.ts";

/** The contents of an invitation; `token` and `confirmation` are secrets of the recipient. */
export interface Invitation {
  readonly token: string;
  readonly confirmation: string;
  /** When the confirmation link stops working. */
  readonly expiresAt: Date;
  /** The service for the recipient; a trailing slash does not matter. */
  readonly publicUrl: URL;
}

/** Writes the invitation of `GET /newcustomer`: confirmation link and access token (api.md, Customers). */
export function writeInvitation({ token, confirmation, expiresAt, publicUrl }: Invitation): MailContent {
  const service = publicUrl.href.replace(/\/+$/, "");
  const link = `${service}/confirm?token=${encodeURIComponent(confirmation)}`;
  const customerApi = `${service}/api/v2/customer`;
  const expiry = spellTime(expiresAt);
  return {
    subject: `Your invitation to Devmesh at ${publicUrl.host}`,
    text: invitationText({ service, link, customerApi, token, expiry }),
    html: invitationHtml({ service, link, customerApi, token, expiry }),
  };
}

interface Words {
  readonly service: string;
  readonly link: string;
  readonly customerApi: string;
  readonly token: string;
  readonly expiry: string;
}

// Plain ASCII like the HTML: it is sent unencoded, so link and token can be copied from the raw mail.
function invitationText({ service, link, customerApi, token, expiry }: Words): string {
  return `Hello,

this address has been invited to use Devmesh at
${service}

Please confirm it. Open this link before ${expiry}:

${link}

Your access token:

${token}

It works at once, as "Authorization: Bearer ..." on
${customerApi}

Keep it to yourself: whoever holds it reads and changes your customer data.

If you did not expect this mail, ignore it. An address that nobody
confirms is removed when the link expires.
`;
}

function invitationHtml(words: Words): string {
  const service = escapeHtml(words.service);
  const link = escapeHtml(words.link);
  const customerApi = escapeHtml(words.customerApi);
  const token = escapeHtml(words.token);
  const expiry = escapeHtml(words.expiry);
  return `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>Your invitation to Devmesh</title></head>
<body style="font-family: sans-serif; line-height: 1.5; max-width: 36em">
<p>Hello,</p>
<p>this address has been invited to use Devmesh at
<a href="${service}">${service}</a>.</p>
<p>Please confirm it. Open this link before ${expiry}:</p>
<p><a href="${link}">${link}</a></p>
<p>Your access token:</p>
<p><code>${token}</code></p>
<p>It works at once, as <code>Authorization: Bearer ...</code> on
<code>${customerApi}</code>.</p>
<p>Keep it to yourself: whoever holds it reads and changes your customer data.</p>
<p>If you did not expect this mail, ignore it. An address that nobody
confirms is removed when the link expires.</p>
</body>
</html>
`;
}
