import type { Logger } from "@devmesh/service-kit/logger";
import type { MailerEnv } from "./env.ts";
import { openOutbox } from "./transport.outbox.ts";
import { createSmtpTransport } from "./transport.smtp.ts";
import type { MailTransport } from "./transport.ts";

/**
 * The way out that the environment chooses; throws when the outbox cannot be made. A server is not asked before the
 * first mail.
 */
export async function openTransport(
  env: Pick<MailerEnv, "SMTP_URL" | "OUTBOX_DIR">,
  log: Logger,
): Promise<MailTransport> {
  const { SMTP_URL: server, OUTBOX_DIR: folder } = env;
  if (server) {
    log.info(
      { host: server.host, port: server.port, starttls: server.startTls },
      "mail goes to an SMTP server",
    );
    return createSmtpTransport(server);
  }
  if (folder === undefined) throw new Error("neither SMTP_URL nor OUTBOX_DIR is set");
  log.info({ folder }, "mail becomes files, since SMTP_URL is not set");
  return await openOutbox(folder);
}
