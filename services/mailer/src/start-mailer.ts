import { mailQueue } from "@devmesh/contracts/mailer";
import type { mesh } from "@devmesh/contracts/mesh";
import { createQueueAdmin } from "@devmesh/service-kit/queue-admin";
import type { StartedService, StartOptions } from "@devmesh/service-kit/run-service";
import type { MailerEnv } from "./env.ts";
import { defaultSender } from "./mail-address.ts";
import { startMailDeliveries } from "./mail-deliveries.ts";
import { createMailMetrics } from "./mail-metrics.ts";
import { createMailer } from "./mailer.ts";
import { openTransport } from "./open-transport.ts";

type Declaration = typeof mesh.mailer;

/** Opens the way out for mail, an SMTP server or the outbox, and begins to work on the queue. */
export async function startMailer(
  parts: StartOptions<Declaration, MailerEnv>,
): Promise<StartedService<Declaration["serves"]>> {
  const { env, bus, clients, log, clock } = parts;
  const { PUBLIC_URL: publicUrl, MAIL_FROM: sender = defaultSender(publicUrl) } = env;
  const transport = await openTransport(env, log);
  const office = createQueueAdmin(bus, mailQueue);
  const deliveries = await startMailDeliveries({
    bus,
    queue: mailQueue,
    clock,
    drainMs: env.DRAIN_MS,
    keys: clients.keys,
    transport,
    sender,
    publicUrl,
    metrics: createMailMetrics(bus, office),
    log,
  });
  return { implementation: createMailer({ queue: office }), stop: () => deliveries.stop() };
}
