import { alertMailQueue, mailQueue } from "@devmesh/contracts/mailer";
import type { mesh } from "@devmesh/contracts/mesh";
import type { Logger } from "@devmesh/service-kit/logger";
import { sumOf } from "@devmesh/service-kit/metrics";
import type { ServiceParts, StartOptions } from "@devmesh/service-kit/process/run-service";
import { createQueueAdmin } from "@devmesh/service-kit/queue/admin";
import type { MailerEnv } from "./env.ts";
import { defaultSender } from "./mail-address.ts";
import { type AlertMailQueue, type MailQueue, startMailDeliveries } from "./mail-deliveries.ts";
import { type CountMails, createMailMetrics } from "./mail-metrics.ts";
import { createMailer } from "./mailer.ts";
import { openOutbox } from "./transport.outbox.ts";
import { createSmtpTransport } from "./transport.smtp.ts";
import type { MailTransport } from "./transport.ts";

type MailerDeclaration = typeof mesh.mailer;

/** Arguments of the start. */
export interface StartMailerOptions
  extends Pick<StartOptions<MailerDeclaration, MailerEnv>, "env" | "bus" | "clients" | "log" | "clock"> {
  /** Default: the transport that the environment names. */
  readonly transport?: MailTransport;
  /** Default: the queues of the contract. */
  readonly queue?: MailQueue;
  readonly alertQueue?: AlertMailQueue;
}

/** The started service. */
export type StartedMailer = Required<
  Pick<ServiceParts<MailerDeclaration["serves"]>, "implementation" | "figures" | "stop">
>;

/** Opens the transport and begins to work on the queue. */
export async function startMailer(options: StartMailerOptions): Promise<StartedMailer> {
  const { env, bus, clients, log, clock, queue = mailQueue, alertQueue = alertMailQueue } = options;
  const { PUBLIC_URL: publicUrl, MAIL_FROM: sender = defaultSender(publicUrl) } = env;
  const transport = options.transport ?? (await openTransport(env, log));
  const admin = createQueueAdmin(bus, queue);
  const alertAdmin = createQueueAdmin(bus, alertQueue);
  const count: CountMails = async () => {
    const [mails, alerts] = await Promise.all([admin.count(), alertAdmin.count()]);
    return { pending: mails.pending + alerts.pending, dead: mails.dead + alerts.dead };
  };
  const metrics = createMailMetrics(bus, count);
  const deliveries = await startMailDeliveries({
    bus,
    queue,
    alertQueue,
    clock,
    drainMs: env.DRAIN_MS,
    keys: clients.keys,
    transport,
    sender,
    publicUrl,
    metrics,
    log,
  });
  const delivery = env.SMTP_URL === undefined ? "files" : "smtp";
  return {
    implementation: createMailer({ queue: admin, alertQueue: alertAdmin, count, delivery }),
    figures: { mails_sent: () => sumOf(metrics.sent) },
    stop: () => deliveries.stop(),
  };
}

/** The transport of the environment. The SMTP server is first contacted by the first mail. */
async function openTransport(env: MailerEnv, log: Logger): Promise<MailTransport> {
  const { SMTP_URL: server, OUTBOX_DIR: folder } = env;
  if (server) {
    const { host, port, startTls } = server;
    log.info({ host, port, starttls: startTls }, "mail goes to an SMTP server");
    return createSmtpTransport(server);
  }
  if (folder === undefined) throw new Error("neither SMTP_URL nor OUTBOX_DIR is set");
  log.info({ folder }, "mail is written to files, since SMTP_URL is not set");
  return await openOutbox(folder);
}
