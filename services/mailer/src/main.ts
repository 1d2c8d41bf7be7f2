import { mailQueue } from "@devmesh/contracts/mailer";
import { mesh } from "@devmesh/contracts/mesh";
import { createQueueOffice } from "@devmesh/service-kit/queue";
import { runService } from "@devmesh/service-kit/run-service";
import { MailerEnv } from "./env.ts";
import { defaultSender } from "./mail-address.ts";
import { startMailDeliveries } from "./mail-deliveries.ts";
import { createMailMetrics } from "./mail-metrics.ts";
import { createMailer } from "./mailer.ts";
import { openTransport } from "./open-transport.ts";

await runService({
  name: "mailer",
  declaration: mesh.mailer,
  env: MailerEnv,
  async start({ env, bus, clients, log, clock }) {
    const transport = await openTransport(env, log);
    const { PUBLIC_URL: publicUrl, MAIL_FROM: sender = defaultSender(publicUrl) } = env;
    const office = createQueueOffice(bus, mailQueue);
    const deliveries = await startMailDeliveries({
      bus,
      queue: mailQueue,
      clock,
      keys: clients.keys,
      transport,
      sender,
      publicUrl,
      metrics: createMailMetrics(bus, office),
      log,
    });
    return { implementation: createMailer({ queue: office }), stop: () => deliveries.stop() };
  },
});
