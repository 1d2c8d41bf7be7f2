import { parseArgs } from "node:util";
import { mesh, type ServiceName } from "@devmesh/contracts/mesh";
import { helpOption, WrongUsage } from "./process/command.ts";

/** What the command line of a mesh asks for. */
export interface MeshArguments {
  readonly demo: boolean;
  readonly without: ReadonlySet<ServiceName>;
}

/** What `npm start -- --help` says. */
export const usage = `Usage: npm start [-- [--demo] [--without SERVICE]...]

  --demo             adds three simulated devices that answer RPC and publish data
  --without SERVICE  leaves out one of ${Object.keys(mesh).join(", ")}: you run it yourself
                     (npm run dev -w services/SERVICE)
  --help             this

Environment: HOST, PORT, MQTT_HOST, MQTT_PORT, MQTT_WS_PORT, NATS_HOST, NATS_PORT, DATA_DIR, MASTER_KEY, STORE_URL, SMTP_URL,
PUBLIC_URL, OTA_PUBLIC_URL, LOG_LEVEL, MQTT_PUBLIC_URL, NATS_URL, NATS_SERVER_BIN, NATS_SERVER_DOWNLOAD_URL, MQTT_TLS_CERT, MQTT_TLS_KEY; see README.md.`;

/** What simulated devices need. */
const demoNeeds = ["gateway", "devices", "keys", "rpc-bridge"] as const satisfies readonly ServiceName[];

/** Parses the command line, without the names of node and of the script. Throws for a wrong one. */
export function meshArguments(args: string[]): MeshArguments | "help" {
  const { values } = parseArgs({
    args,
    options: {
      demo: { type: "boolean", default: false },
      without: { type: "string", multiple: true, default: [] },
      ...helpOption,
    },
  });
  if (values.help) return "help";
  const without = new Set<ServiceName>();
  for (const name of values.without) {
    if (!isServiceName(name)) throw new WrongUsage(`There is no service ${name}.`);
    without.add(name);
  }
  const missed = demoNeeds.find((service) => values.demo && without.has(service));
  if (missed) throw new WrongUsage(`--demo needs ${missed}: its devices connect during the start.`);
  return { demo: values.demo, without };
}

/** Whether a service of the mesh has this name. */
export function isServiceName(name: string): name is ServiceName {
  return Object.hasOwn(mesh, name);
}
