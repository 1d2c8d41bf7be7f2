import { keys } from "@devmesh/contracts/keys";
import { type AlertMail, alertMailQueue, mailer, mailQueue } from "@devmesh/contracts/mailer";
import { calls } from "@devmesh/contracts/topology";
import { type Bus, connectBus } from "@devmesh/service-kit/bus";
import { systemClock } from "@devmesh/service-kit/clock";
import { ServiceError } from "@devmesh/service-kit/errors";
import { createLogger } from "@devmesh/service-kit/logger";
import { createProducer } from "@devmesh/service-kit/queue/producer";
import { createClient } from "@devmesh/service-kit/rpc/client";
import { createCallContext } from "@devmesh/service-kit/rpc/context";
import { type Served, serve } from "@devmesh/service-kit/rpc/serve";
import { startNatsServer } from "@devmesh/testkit/nats-server";
import { z } from "zod";
import { MailerEnv } from "../src/env.ts";
import { startMailer } from "../src/start-mailer.ts";
import type { MailTransport } from "../src/transport.ts";

/** The token that every test customer has; no file of the broker may hold it. */
export const customerToken = "ck_TokenOfACustomerThatNobodyElse00";

/** The part of the contract of `keys` that the mailer calls. */
const invitations = { ...keys, methods: { readInvitation: keys.methods.readInvitation } };

const log = createLogger({ service: "test", level: process.env.TEST_LOG ?? "silent" });

/** A broker with `keys` answering for some customers, and what a test needs to queue mail and ask about it. */
export async function openMailRoom() {
  const server = await startNatsServer({ jetstream: true });
  const buses: Bus[] = [];
  const connect = async (name: string) => {
    const bus = await connectBus({ url: server.url, name, log });
    buses.push(bus);
    return bus;
  };
  const bus = await connect("gateway");
  const customers = new Map<string, string>();
  const producer = await createProducer(bus, mailQueue);
  const alertProducer = await createProducer(bus, alertMailQueue);

  async function stop() {
    await Promise.all(buses.map((open) => open.close()));
    await server.stop();
  }
  return {
    server,
    producer,
    /** Customer id → e-mail address. */
    customers,
    /** Lets `keys` answer from now on. */
    async openKeys(): Promise<Served> {
      return serve(await connect("keys"), invitations, {
        readInvitation: async ({ customer_id }, context) => ({
          email: customers.get(customer_id) ?? context.fail("customer_not_found"),
          token: customerToken,
          confirmation: `confirm-${customer_id}`,
          expires_at: "2026-01-08T12:00:00.000Z",
        }),
      });
    },
    /** Adds a customer and queues their invitation. */
    async invite(customer_id: string, email = `${customer_id}@example.com`) {
      customers.set(customer_id, email);
      await producer.enqueue({ kind: "invitation", customer_id });
    },
    /** Queues a mail about alerts, as a test of a channel. */
    async alert(to: string, test = "On call") {
      const mail: AlertMail = { to, alerts: [], more: 0, test };
      await alertProducer.enqueue(mail);
    },
    /** Queues what only another release would understand. */
    async enqueueForeign(job: unknown) {
      const foreign = await createProducer(bus, { ...mailQueue, job: z.unknown() });
      await foreign.enqueue(job);
    },
    /** A mailer in this process, answering its contract; its delays are short by default. */
    async openMailer(
      transport: MailTransport,
      { backoffMs = [50, 50], attemptMs = 10_000, drainMs = 15_000, clock = systemClock } = {},
    ) {
      const own = await connect("mailer");
      const env = MailerEnv.parse({
        PUBLIC_URL: "https://devices.example.com",
        SMTP_URL: "smtp://of-the-transport.example.com",
        DRAIN_MS: String(drainMs),
      });
      const { implementation, stop } = await startMailer({
        env,
        bus: own,
        clients: { keys: createClient(own, calls(keys, ["readInvitation"])) },
        log,
        clock,
        transport,
        queue: { ...mailQueue, backoffMs, attemptMs },
        alertQueue: { ...alertMailQueue, backoffMs, attemptMs },
      });
      const served = serve(own, mailer, implementation);
      return {
        metrics: own.metrics,
        stopDeliveries: stop,
        async [Symbol.asyncDispose]() {
          await served.drain(1_000);
          await stop();
          await own.close();
        },
      };
    },
    /** The mailer as its callers see it. */
    mailer: createClient(bus, calls(mailer, ["listDeadMail", "retryDeadMail", "readQueue"])),
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

/** The context of a call that a test makes. */
export function testCall() {
  return createCallContext({ timeoutMs: 10_000 });
}

/** The reason with which a call is refused; fails the test when it is answered. */
export async function refusalOf(calling: Promise<unknown>): Promise<string> {
  try {
    await calling;
  } catch (error) {
    if (error instanceof ServiceError) return error.reason;
    throw error;
  }
  throw new Error("the call was answered");
}
