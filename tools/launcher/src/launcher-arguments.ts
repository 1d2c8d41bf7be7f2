import { parseArgs } from "node:util";
import { mesh, type ServiceName } from "@devmesh/contracts/mesh";

/** What the command line of the launcher asks for. */
export type LauncherArguments =
  | { readonly kind: "start"; readonly demo: boolean; readonly without: ReadonlySet<ServiceName> }
  | { readonly kind: "help" }
  | { readonly kind: "wrong"; readonly reason: string };

/** What `npm start -- --help` says. */
export const usage = `Usage: npm start [-- [--demo] [--without SERVICE]...]

  --demo             adds three simulated devices that answer RPC and publish data
  --without SERVICE  leaves out one of ${Object.keys(mesh).join(", ")}: you run it yourself
                     (npm run dev -w services/SERVICE)
  --help             this

Environment: HOST, PORT, MQTT_PORT, NATS_PORT, MQTT_WS_PORT, DATA_DIR, MASTER_KEY, STORE_URL, SMTP_URL, PUBLIC_URL, LOG_LEVEL,
MQTT_PUBLIC_URL, NATS_URL, NATS_SERVER_BIN, NATS_SERVER_DOWNLOAD_URL, MQTT_TLS_CERT, MQTT_TLS_KEY; see README.md.`;

/** What simulated devices need. */
const demoNeeds = ["gateway", "devices", "keys", "rpc-bridge"] as const satisfies readonly ServiceName[];

/** Parses the command line, without the names of node and of the script. */
export function launcherArguments(args: readonly string[]): LauncherArguments {
  let values: { demo?: boolean; without?: string[]; help?: boolean };
  try {
    ({ values } = parseArgs({
      args: [...args],
      options: {
        demo: { type: "boolean" },
        without: { type: "string", multiple: true },
        help: { type: "boolean", short: "h" },
      },
    }));
  } catch (error) {
    return { kind: "wrong", reason: error instanceof Error ? error.message : String(error) };
  }
  if (values.help) return { kind: "help" };
  const without = new Set<ServiceName>();
  for (const name of values.without ?? []) {
    if (!isServiceName(name)) return { kind: "wrong", reason: `There is no service ${name}.` };
    without.add(name);
  }
  const missed = demoNeeds.find((service) => values.demo && without.has(service));
  if (missed)
    return { kind: "wrong", reason: `--demo needs ${missed}: its devices connect during the start.` };
  return { kind: "start", demo: values.demo ?? false, without };
}

/** Whether a service of the mesh has this name. */
export function isServiceName(name: string): name is ServiceName {
  return Object.hasOwn(mesh, name);
}
