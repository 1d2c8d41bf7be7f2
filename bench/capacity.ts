/**
 * What a deployment for a fleet is made of and what breaks first, calculated from measured costs; prints Markdown.
 * `node bench/capacity.ts --devices 1000000 --records-per-minute 2`; `--help` lists all inputs.
 */
import { parseArgs } from "node:util";

/** What can be given, for each device where a rate; `devices` may be several numbers with commas. */
const defaults = {
  devices: "10000,100000,1000000",
  "records-per-minute": "2",
  "updates-per-minute": "0.1",
  "calls-per-minute": "0.02",
  "retention-days": "30",
  "return-minutes": "10",
  "server-gb": "64",
} as const;

const performance = "[performance](../performance.md)";
const capacity = "[capacity](capacity.md)";
const unitCosts = "`unit-costs`, SQLite";
const overMongo = "`unit-costs`, MongoDB";
const inCluster = "`unit-costs`, SQLite, three servers";
/** Costs and bounds: value, what it is, where it was measured. */
const constants = {
  brokerRecord: [0.08, "ms of nats-server for a record at QoS 1 of one of 1,000 devices", unitCosts],
  dataRecord: [0.04, "ms of `data` for it, SQLite", unitCosts],
  dataRecordMongo: [0.055, "ms of `data` for it, MongoDB, without the server", overMongo],
  brokerUpdate: [0.46, "ms of nats-server for a shadow update", overMongo],
  devicesUpdate: [0.85, "ms of `devices` for it", overMongo],
  bridgeUpdate: [0.3, "ms of `rpc-bridge` for it", overMongo],
  brokerCall: [0.1, "ms of nats-server for a call over HTTP", unitCosts],
  gatewayCall: [0.23, "ms of the gateway for it", unitCosts],
  bridgeCall: [0.09, "ms of `rpc-bridge` for it", unitCosts],
  brokerLogin: [2.1, "ms of nats-server for a login and a record", overMongo],
  keysLogin: [0.8, "ms of `keys` for it", overMongo],
  devicesLogin: [1.6, "ms of `devices` for it, which publishes presence", overMongo],
  bridgeLogin: [0.7, "ms of `rpc-bridge` for it, which sends the delta", overMongo],
  brokerIdle: [0.009, "ms of nats-server in a second for a device that is connected", unitCosts],
  proxyRecord: [0.043, "ms of HAProxy for a publication", performance],
  connectionKb: [80, "KB of nats-server for a connection without a QoS 1 subscription", capacity],
  consumerKb: [168, "KB more for a QoS 1 subscription, on each of three servers of a cluster", inCluster],
  consumerIdle: [
    0.18,
    "ms in a second for it of the server that leads, though nothing is published",
    inCluster,
  ],
  recordBytes: [1_100, "bytes through nats-server for a record, its files included", unitCosts],
  callBytes: [2_100, "bytes through nats-server for a call", unitCosts],
  sqliteRecord: [355, "bytes on the disk of a record of 86 bytes, SQLite", capacity],
  mongoRecord: [408, "bytes of it as `DATA_MAX_BYTES` counts it, MongoDB", capacity],
  sqliteDevice: [1_540, "bytes on the disk of a device with six values in its shadow, SQLite", unitCosts],
  mongoDevice: [1_145, "bytes of it as BSON with its credentials, without indexes", "once, of 100 devices"],
  serviceMb: [512, "MB that manifests give a process of a service", capacity],
  streamShown: [7_352, "records a second stored through one stream, all on two cores", performance],
  streamMost: [33_241, "records a second that nats-server acknowledges alone, on two cores", performance],
  haAssets: [
    1_000,
    "consumers with three copies on a server from which on Synadia warns",
    "Synadia, CLUSTER_003",
  ],
  mongoTb: [4, "TB of one replica set at MongoDB Atlas", "forum of MongoDB"],
  facetsMs: [6.62, "ms for counts by condition and 1,000 devices, MongoDB's protocol; goal 300", performance],
  jobKb: [0.371, "KB of `devices` for each device of a job while it is planned", performance],
  jobMb: [182, "MB of `devices` that are free at its limit under load", capacity],
  listingMs: [
    0.05,
    "ms for each connection between two readings of what devices send",
    "`device-throttle.ts`",
  ],
} as const satisfies Readonly<Record<string, readonly [number, string, string]>>;

type ConstantName = keyof typeof constants;
const of = (name: ConstantName): number => constants[name][0];

/** Part of a processor that is planned for: what the autoscalers of `k8s/` let a pod use. */
const usable = 0.7;
/** Each of so many nats-servers stores each message; counted as if each paid what one alone pays. */
const copies = 3;
const least = 2;

/** A fleet: rates are a second and of all devices. */
interface PlannedFleet {
  readonly devices: number;
  readonly records: number;
  readonly updates: number;
  readonly calls: number;
  readonly retentionDays: number;
  readonly returnSeconds: number;
  readonly serverGb: number;
}

const number = new Intl.NumberFormat("en-US", { maximumSignificantDigits: 3 });
const whole = new Intl.NumberFormat("en-US");
const replicas = (cores: number): number => Math.max(least, Math.ceil(cores / usable));

/** Ratios of what a fleet wants to what one of a kind takes, by what it is. */
function limitsOf(fleet: PlannedFleet): Readonly<Record<string, number>> {
  const { devices, records, updates } = fleet;
  const published = records + updates;
  return {
    "one stream of the broker, as shown": published / of("streamShown"),
    "one stream of the broker, at most": published / of("streamMost"),
    "the one replica of `data` that stores, SQLite": (records * of("dataRecord")) / 1_000 / usable,
    "the one replica of `data` that stores, MongoDB": (records * of("dataRecordMongo")) / 1_000 / usable,
    "the one replica of `rpc-bridge` that takes updates": (updates * of("bridgeUpdate")) / 1_000 / usable,
    "one QoS 1 subscription a device, in a cluster: consumers": devices / of("haAssets"),
    "one QoS 1 subscription a device, in a cluster: a processor while nothing is published":
      (devices * of("consumerIdle")) / 1_000 / usable,
    "one QoS 1 subscription a device, in a cluster: memory":
      (devices * of("consumerKb")) / 1e6 / fleet.serverGb,
    "records in one replica set of MongoDB":
      (recordsStored(fleet) * of("mongoRecord")) / 1e12 / of("mongoTb"),
    "counts by condition within 300 ms": ((devices / 1_000) * of("facetsMs")) / 300,
    "a job for all devices within the memory of `devices`": (devices * of("jobKb")) / 1_000 / of("jobMb"),
    "a device that floods is noticed within 10 s": (devices * of("listingMs")) / 10_000,
  };
}

const recordsStored = ({ records, retentionDays }: PlannedFleet): number => records * 86_400 * retentionDays;

/** What a deployment is made of, by part. */
function partsOf(fleet: PlannedFleet): Readonly<Record<string, string>> {
  const { devices, records, updates, calls } = fleet;
  const messages = records * of("brokerRecord") + updates * of("brokerUpdate");
  const brokerCores = (messages * copies + calls * of("brokerCall") + devices * of("brokerIdle")) / 1_000;
  const memoryGb = (devices * of("connectionKb")) / 1e6;
  const servers = Math.max(copies, Math.ceil(memoryGb / (fleet.serverGb / 2)));
  const logins = devices / fleet.returnSeconds;
  const published = records + updates;
  const cores = {
    gateway: (calls * of("gatewayCall")) / 1_000,
    keys: (logins * of("keysLogin")) / 1_000,
    devices: (updates * of("devicesUpdate") + logins * of("devicesLogin")) / 1_000,
    "rpc-bridge": (calls * of("bridgeCall") + logins * of("bridgeLogin")) / 1_000,
  };
  const counts = Object.entries(cores).map(([service, used]) => [service, replicas(used)] as const);
  const others = ["data", "jobs", "alerts", "webhooks", "mailer"].map((service) => [service, least] as const);
  const processes = [...counts, ...others].reduce((sum, [, some]) => sum + some, 0);
  const mongoTb = (recordsStored(fleet) * of("mongoRecord") + devices * of("mongoDevice")) / 1e12;
  const network = ((records * of("recordBytes") + calls * of("callBytes")) * 8) / 1e6;
  return {
    "records, updates and calls a second": [records, updates, calls]
      .map((rate) => number.format(rate))
      .join(", "),
    "one stream of the broker": streamText(published),
    "nats-servers": String(servers),
    "their processors, in all": number.format(Math.max(servers, brokerCores / usable)),
    "their processors while all devices come back": number.format(
      (logins * of("brokerLogin")) / 1_000 / usable,
    ),
    "memory of each for connections, GB": number.format(memoryGb / servers),
    "more on each of three for QoS 1 subscriptions, GB": number.format((devices * of("consumerKb")) / 1e6),
    "HAProxy in front of MQTT": String(replicas((published * of("proxyRecord")) / 1_000)),
    ...Object.fromEntries(counts.map(([service, some]) => [service, String(some)])),
    "data, jobs, alerts, webhooks and mailer, each": String(least),
    "memory of all services, GB": number.format((processes * of("serviceMb")) / 1e3),
    "records kept": number.format(recordsStored(fleet)),
    "MongoDB, a replica set of three, TB on each": number.format(mongoTb),
    "or SQLite on one machine, TB": number.format(
      (recordsStored(fleet) * of("sqliteRecord") + devices * of("sqliteDevice")) / 1e12,
    ),
    "through nats-server, Mbit/s": number.format(network),
  };
}

function streamText(published: number): string {
  if (published <= of("streamShown")) return "carries it";
  if (published <= of("streamMost")) return "may carry it; not shown";
  return `not reachable with one stream: ${number.format(published / of("streamMost"))} times what one takes`;
}

function fail(message: string): never {
  console.error(`${message}\nInputs: ${inputs.map((name) => `--${name} ${defaults[name]}`).join(" ")}`);
  process.exit(2);
}

type Input = keyof typeof defaults;
const inputs = Object.keys(defaults) as Input[];

function readCommandLine(): Readonly<Record<Input, string>> {
  const strings = inputs.map((name) => [name, { type: "string", default: defaults[name] }] as const);
  try {
    const { values } = parseArgs({ options: Object.fromEntries(strings) });
    return values as Record<Input, string>;
  } catch (error) {
    return fail(error instanceof Error ? error.message : String(error));
  }
}

/** A number of the command line. Rates may be 0. */
function numeric(name: Input, text: string): number {
  const mayBeZero = name.endsWith("-per-minute");
  const value = /^\d+(\.\d+)?$/.test(text) ? Number(text) : Number.NaN;
  const isGood = mayBeZero ? value >= 0 : value > 0;
  if (!isGood) fail(`--${name} is "${text}"; it must be a number${mayBeZero ? "" : " above 0"}.`);
  return value;
}

function fleetOf(asked: Readonly<Record<Input, string>>, count: string): PlannedFleet {
  const devices = numeric("devices", count);
  const rate = (name: Input) => (numeric(name, asked[name]) * devices) / 60;
  return {
    devices,
    records: rate("records-per-minute"),
    updates: rate("updates-per-minute"),
    calls: rate("calls-per-minute"),
    retentionDays: numeric("retention-days", asked["retention-days"]),
    returnSeconds: numeric("return-minutes", asked["return-minutes"]) * 60,
    serverGb: numeric("server-gb", asked["server-gb"]),
  };
}

function printTable(heads: readonly string[], rows: readonly (readonly string[])[]): void {
  const lines = [heads, heads.map(() => "---"), ...rows];
  console.log(`${lines.map((cells) => `| ${cells.join(" | ")} |`).join("\n")}\n`);
}

/** A part of a limit; more than one is printed bold. */
function usedText(ratio = Number.NaN): string {
  return ratio > 1 ? `**${number.format(ratio)}**` : number.format(ratio);
}

const asked = readCommandLine();
const fleets = asked.devices.split(",").map((count) => fleetOf(asked, count));
const sizes = fleets.map(({ devices }) => `${whole.format(devices)} devices`);
const parts = fleets.map(partsOf);

console.log(
  `${inputs
    .slice(1)
    .map((name) => `\`--${name} ${asked[name]}\``)
    .join(", ")}\n`,
);
printTable(
  ["made of", ...sizes],
  Object.keys(parts[0] ?? {}).map((row) => [row, ...parts.map((part) => part[row] ?? "")]),
);
const [first] = fleets;
const limits = fleets.map(limitsOf);
const holdsUpTo = (what: string) => (first?.devices ?? Number.NaN) / (limits[0]?.[what] ?? Number.NaN);
printTable(
  ["limit", "holds up to, devices", ...sizes.map((size) => `used by ${size}`)],
  Object.keys(limits[0] ?? {})
    .toSorted((one, other) => holdsUpTo(one) - holdsUpTo(other))
    .map((what) => [what, number.format(holdsUpTo(what)), ...limits.map((ratios) => usedText(ratios[what]))]),
);
printTable(
  ["constant", "", "measured by"],
  Object.values(constants).map(([value, what, from]) => [String(value), what, from]),
);
