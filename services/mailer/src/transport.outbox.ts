import { mkdir, open, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createTransport } from "nodemailer";
import { mimeMessageOf } from "./mime-message.ts";
import { type Mail, MailDelayed, type MailTransport } from "./transport.ts";

/**
 * Writes each mail as `<time it was queued>-<id>.eml` into a folder, which it creates, while no server is configured.
 * Files hold tokens, so only their owner can read them; a mail that is sent again replaces its first copy.
 */
export async function openOutbox(folder: string): Promise<MailTransport> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const composer = createTransport({ streamTransport: true, buffer: true, newline: "windows" });
  return {
    async send(mail: Mail, signal: AbortSignal) {
      const { message } = await composer.sendMail({ ...mimeMessageOf(mail), signal });
      const name = fileNameOf(mail);
      try {
        await writeWhole(folder, name, message as Buffer);
      } catch (error) {
        throw new MailDelayed(`could not write ${name} into the outbox`, { cause: error });
      }
    },
  };
}

function fileNameOf({ id, queuedAt }: Mail): string {
  if (!/^[A-Za-z0-9_-]+$/.test(id)) throw new TypeError("the id of a mail must be usable in a file name");
  return `${queuedAt.toISOString().replaceAll(":", "-")}-${id}.eml`;
}

async function writeWhole(folder: string, name: string, content: Buffer): Promise<void> {
  // One draft for each mail: the next attempt overwrites what a crash left.
  const draft = join(folder, `.${name}.part`);
  await writeFile(draft, content, { mode: 0o600, flush: true });
  await rename(draft, join(folder, name));
  // The job is done when this returns: the new name must survive a power cut, too.
  const directory = await open(folder, "r");
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}
