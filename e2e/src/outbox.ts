import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { eventually } from "@devmesh/testkit/eventually";
import PostalMime from "postal-mime";

/** An invitation to a customer. */
export interface InvitationMail {
  readonly to: string;
  readonly token: string;
  /** The confirmation link, whole. */
  readonly link: string;
}

/** Waits for the newest invitation to an address in the outbox of a mesh without SMTP. */
export async function awaitInvitation(dataDir: string, email: string): Promise<InvitationMail> {
  return await eventually(async () => (await invitationsTo(dataDir, email)).at(-1));
}

/** All invitations to an address, oldest first. */
export async function invitationsTo(dataDir: string, email: string): Promise<InvitationMail[]> {
  const folder = join(dataDir, "outbox");
  const files = (await readdir(folder).catch(() => [])).filter((file) => file.endsWith(".eml")).sort();
  const found: InvitationMail[] = [];
  for (const file of files) {
    const mail = await PostalMime.parse(await readFile(join(folder, file)));
    if (mail.to?.[0]?.address !== email) continue;
    const text = mail.text ?? "";
    const token = /ck_[0-9A-Za-z]{32}/.exec(text)?.[0];
    const link = /https?:\/\/\S+\/confirm\?token=[^\s<>"]+/.exec(text)?.[0];
    if (token && link) found.push({ to: email, token, link });
  }
  return found;
}
