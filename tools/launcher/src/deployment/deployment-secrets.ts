import { createHash } from "node:crypto";
import { brokerClients, type ServiceName, storeOwners } from "@devmesh/contracts/mesh";
import { brokerUsers } from "@devmesh/device-broker/broker-config";
import { ensureInstallation, type Installation } from "@devmesh/supervisor/mesh/installation";

/** The broker's users by the environment variable of their password, such as `NATS_PASSWORD_RPC_BRIDGE_DEVICES`. */
export const brokerPasswordVariables: ReadonlyMap<string, string> = new Map(
  brokerUsers(brokerClients).map(({ name }) => [passwordVariable(name), name]),
);

function passwordVariable(name: string): string {
  return `NATS_PASSWORD_${variableOf(name)}`;
}

/** The environment variable with the password of a user of MongoDB. */
export function mongodbPasswordVariable(user: string): string {
  return `MONGODB_PASSWORD_${variableOf(user)}`;
}

function variableOf(name: string): string {
  return name.toUpperCase().replaceAll(/[^A-Z]/g, "_");
}

/** The variable with the public key of the issuer of MQTT logins. */
export const issuerVariable = "AUTH_ISSUER";

/** Users of MongoDB: `root`, and one for each service with a store. */
export const mongodbUsers: readonly string[] = ["root", ...storeOwners];

/** Names in `passwords` of an installation that are no users of the broker. */
const routeName = "nats.route";
const memberName = "mongodb.member";
const masterKeyName = "master-key";
const mongodbName = (user: string) => `mongodb.${user}`;

/** Every secret of one deployment. */
export interface DeploymentSecrets {
  /** Password of a user of the broker by its `name`; undefined where there is no such user. */
  readonly brokerPassword: (name: string) => string | undefined;
  /** For the routes of a NATS cluster. */
  readonly routePassword: string;
  readonly issuer: Installation["issuer"];
  readonly keyEncryptionKey: string;
  readonly webhookKey: string;
  /** The first master key, where no Job makes one. */
  readonly masterKey: string;
  readonly mongodbPassword: (user: string) => string;
  /** For the members of a replica set (`--keyFile`). */
  readonly mongodbMemberKey: string;
}

/** The secrets kept in a file (mode 0600); what is missing, as after an upgrade, is made and stored first. */
export async function deploymentSecrets(file: string): Promise<DeploymentSecrets> {
  const names = [
    ...brokerUsers(brokerClients).map(({ name }) => name),
    routeName,
    memberName,
    masterKeyName,
    ...mongodbUsers.map(mongodbName),
  ];
  const { passwords, issuer, key_encryption_key, webhook_key } = await ensureInstallation(file, names);
  const made = (name: string) => passwords[name] ?? "";
  return {
    brokerPassword: (name) => passwords[name],
    routePassword: made(routeName),
    issuer,
    keyEncryptionKey: key_encryption_key,
    webhookKey: webhook_key,
    // 32 hex digits are 128 bits, and letters and digits alone.
    masterKey: `mk_${createHash("sha256").update(made(masterKeyName)).digest("hex").slice(0, 32)}`,
    mongodbPassword: (user) => made(mongodbName(user)),
    // mongod takes base64 only; what differs are the two characters of base64url.
    mongodbMemberKey: made(memberName).replaceAll("-", "+").replaceAll("_", "/"),
  };
}

/** The passwords of a service or sidecar for the broker, as environment variables. */
export function brokerCredentials(
  client: keyof typeof brokerClients,
  secrets: DeploymentSecrets,
): Record<string, string> {
  const own = secrets.brokerPassword(client);
  const inDevices = secrets.brokerPassword(`${client}.devices`);
  return {
    ...(own === undefined ? {} : { NATS_PASSWORD: own }),
    ...(inDevices === undefined ? {} : { NATS_DEVICES_PASSWORD: inDevices }),
  };
}

/** `STORE_URL` of a service whose user and database on these hosts have its name. */
export function mongodbStoreUrl(
  service: ServiceName,
  hosts: string,
  options: string,
  secrets: DeploymentSecrets,
): string {
  const password = encodeURIComponent(secrets.mongodbPassword(service));
  return `mongodb://${service}:${password}@${hosts}/${service}?${options}`;
}

/** The file `.env` that compose.yaml takes its secrets from. */
export function composeEnvironment(secrets: DeploymentSecrets): string {
  const variables = [
    ...[...brokerPasswordVariables].map(([variable, user]) => [variable, secrets.brokerPassword(user)]),
    [issuerVariable, secrets.issuer.public_key],
    ["AUTH_ISSUER_SEED", secrets.issuer.seed],
    ["KEY_ENCRYPTION_KEY", secrets.keyEncryptionKey],
    ["WEBHOOK_KEY", secrets.webhookKey],
    ["MASTER_KEY", secrets.masterKey],
    ...mongodbUsers.map((user) => [mongodbPasswordVariable(user), secrets.mongodbPassword(user)]),
  ];
  // None of these holds a quote, a dollar or a line feed: they are base64, base32 and letters.
  return variables.map(([name, value]) => `${name}=${value ?? ""}\n`).join("");
}
