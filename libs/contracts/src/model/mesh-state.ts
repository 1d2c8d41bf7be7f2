import { z } from "zod";
import { FleetSummary } from "./fleet.ts";
import { Timestamp } from "./time.ts";

const Endpoint = z
  .object({
    name: z.string().describe("Name of the method."),
    requests: z.int().min(0).describe("Number of requests."),
    errors: z.int().min(0).describe("Number of requests that failed."),
    mean_ms: z.number().min(0).describe("Mean time of a request, in milliseconds; 0 before the first."),
    total_ms: z.number().min(0).describe("Total time of all requests, in milliseconds."),
  })
  .meta({ id: "Endpoint", description: "The requests of one method since the start of the replica." });

/** What a replica counts besides requests; each service has some of them. Counts begin at the start of the replica. */
export const ReplicaFigures = z
  .object({
    records_stored: z.int().min(0).describe("Number of records stored."),
    stored_bytes: z.int().min(0).describe("Size of all stored records and their indexes, in bytes."),
    devices_online: z.int().min(0).describe("Number of devices with an MQTT connection now."),
    logins: z.int().min(0).describe("Number of MQTT logins of devices that were accepted."),
    logins_refused: z.int().min(0).describe("Number of MQTT logins that were refused, or failed."),
    messages_handled: z.int().min(0).describe("Number of shadow requests and events of devices handled."),
    mails_sent: z.int().min(0).describe("Number of mails that were sent."),
  })
  .partial()
  .meta({ id: "ReplicaFigures", description: "What a replica counts besides requests." });
export type ReplicaFigures = z.infer<typeof ReplicaFigures>;

/** One process of a service, as its `$SRV.STATS` reports it (ADR 5). Counts begin at its start. */
const Replica = z
  .object({
    id: z.string().describe("Unique among all replicas of all services."),
    release: z
      .string()
      .nullable()
      .default(null)
      .describe("The release of Devmesh that it runs; null where it is not announced."),
    version: z.string().describe("Version of its contract, as in `2.0.0` for the second one."),
    started: z
      .string()
      .meta({ format: "date-time", example: "2026-01-31T12:00:00.000Z", description: "When it started." }),
    endpoints: z.array(Endpoint).describe("What it serves."),
    figures: ReplicaFigures.describe("What it counts besides."),
  })
  .meta({ id: "Replica", description: "One process of a service." });

const Service = z
  .object({
    name: z.string().describe("Name of the service."),
    replicas: z.array(Replica).describe("Its running processes."),
  })
  .meta({ id: "Service", description: "A service that runs." });

/** Length of a queue; null where its owner does not answer. */
const waiting = (what: string) =>
  z.int().min(0).nullable().describe(`Number of ${what}; null where the owner does not answer.`);

const Queues = z
  .object({
    data: waiting("messages of devices that are not stored yet"),
    rpc_bridge: waiting("shadow requests and events of devices that are not handled yet"),
    jobs: waiting("executions that have not ended"),
    mail: waiting("mails that are not sent yet"),
    dead_mail: waiting("mails that were given up"),
    webhooks: waiting("events that wait for the webhook with the most").optional(),
  })
  .meta({ id: "Queues", description: "What waits." });

/** How mail leaves: to the server of `SMTP_URL`, or into files where that is not set. */
export const MailDelivery = z.enum(["smtp", "files"]);
export type MailDelivery = z.infer<typeof MailDelivery>;

/** Replicas and queues of the mesh. */
export const MeshState = z
  .object({
    timestamp: Timestamp.describe("When this was asked."),
    services: z.array(Service).describe("In alphabetical order; a service without a replica is not listed."),
    hanging: z
      .array(z.string())
      .optional()
      .describe(
        "Names of the services of which a process is connected and does not answer, in alphabetical order; absent from a gateway of an older release.",
      ),
    queues: Queues.describe("What waits in the queues of the mesh."),
    fleet: FleetSummary.optional().describe(
      "All devices in numbers; absent where `devices` does not answer.",
    ),
    mail_delivery: MailDelivery.optional().describe(
      "How mail leaves: to the server of `SMTP_URL`, or into files where that is not set; absent where mailer does not answer.",
    ),
  })
  .meta({
    id: "MeshState",
    description: "The services that run and what waits in their queues.",
    example: {
      timestamp: "2026-01-31T12:00:00.000Z",
      services: [
        {
          name: "mailer",
          replicas: [
            {
              id: "mailer-3f2a",
              release: "0.1.0",
              version: "1.0.0",
              started: "2026-01-31T08:00:00.000Z",
              endpoints: [{ name: "listDeadMail", requests: 120, errors: 0, mean_ms: 0.8, total_ms: 96 }],
              figures: {},
            },
          ],
        },
      ],
      hanging: ["data"],
      queues: { data: null, rpc_bridge: 0, jobs: 0, mail: 1, dead_mail: null },
    },
  });
export type MeshState = z.infer<typeof MeshState>;
