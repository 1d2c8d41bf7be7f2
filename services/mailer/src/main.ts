import { mailQueue } from "@devmesh/contracts/mailer";
import { mesh } from "@devmesh/contracts/mesh";
import { createQueueOffice } from "@devmesh/service-kit/queue";
import { runService } from "@devmesh/service-kit/run-service";
import { MailerEnv } from "./env.ts";
import { defaultSender } from "./mail-address.ts";
import { startMailDeliveries } from "./mail-deliveries.ts";
import { createMailer } from "./mailer.ts";
import { openTransport } from "./open-transport.ts";

await runService({
  name: "mailer",
  declaration: mesh.mailer,
  env: MailerEnv,
  async start({ env, bus, clients, log, clock }) {
    const transport = await openTransport(env, log);
    const { PUBLIC_URL: publicUrl, MAIL_FROM: sender = defaultSender(publicUrl) } = env;
    const delivery = { keys: clients.keys, transport, sender, publicUrl, log };
    const deliveries = await startMailDeliveries({ ...delivery, bus, queue: mailQueue, clock });
    const queue = createQueueOffice(bus, mailQueue);
    return { implementation: createMailer({ queue }), stop: () => deliveries.stop() };
  },
});
