import { createHash } from "node:crypto";
import { mesh, type ServiceName } from "@devmesh/contracts/mesh";
import { brokerUsers } from "@devmesh/device-broker/broker-config";
import { createAccountKeyPair } from "@devmesh/device-broker/nkey";
import { ensureInstallation, type Installation } from "../mesh/installation.ts";
import { storeOwners } from "../mesh/service-environment.ts";

/** Users of MongoDB: the one that makes the others, and one for each service that keeps data. */
export const mongodbUsers: readonly string[] = ["root", ...storeOwners];

/** Names below which `passwords` of an installation keeps what is no password of a user of the broker. */
const routeName = "nats.route";
const memberName = "mongodb.member";
const masterKeyName = "master-key";
const mongodbName = (user: string) => `mongodb.${user}`;

/** Every secret of one deployment. */
export interface DeploymentSecrets {
  /** Password of a user of the broker by its `name`; undefined where there is no such user. */
  readonly brokerPassword: (name: string) => string | undefined;
  /** With it the servers of a NATS cluster know each other. */
  readonly routePassword: string;
  readonly issuer: Installation["issuer"];
  readonly keyEncryptionKey: string;
  /** The first master key, where no Job makes one. */
  readonly masterKey: string;
  readonly mongodbPassword: (user: string) => string;
  /** With it the members of a replica set know each other (`--keyFile`). */
  readonly mongodbMemberKey: string;
}

/**
 * The secrets kept in a file (mode 0600); what is missing is made and stored before it is used, so that the same file
 * always gives the same secrets, and a new release those it needs besides.
 */
export async function deploymentSecrets(file: string): Promise<DeploymentSecrets> {
  const names = [
    ...brokerUsers(mesh).map(({ name }) => name),
    routeName,
    memberName,
    masterKeyName,
    ...mongodbUsers.map(mongodbName),
  ];
  const { passwords, issuer, key_encryption_key } = await ensureInstallation(
    file,
    names,
    createAccountKeyPair,
  );
  const made = (name: string) => passwords[name] ?? "";
  return {
    brokerPassword: (name) => passwords[name],
    routePassword: made(routeName),
    issuer,
    keyEncryptionKey: key_encryption_key,
    // 32 hex digits are 128 bits, and letters and digits alone.
    masterKey: `mk_${createHash("sha256").update(made(masterKeyName)).digest("hex").slice(0, 32)}`,
    mongodbPassword: (user) => made(mongodbName(user)),
    // mongod takes base64 only; what differs are the two characters of base64url.
    mongodbMemberKey: made(memberName).replaceAll("-", "+").replaceAll("_", "/"),
  };
}

/** What a service needs to reach the broker as itself. */
export function brokerCredentials(service: ServiceName, secrets: DeploymentSecrets): Record<string, string> {
  const own = secrets.brokerPassword(service);
  const inDevices = secrets.brokerPassword(`${service}.devices`);
  return {
    ...(own === undefined ? {} : { NATS_PASSWORD: own }),
    ...(inDevices === undefined ? {} : { NATS_DEVICES_PASSWORD: inDevices }),
  };
}

/** `STORE_URL` of a service whose store is on these hosts, under a user and in a database of the service's name. */
export function mongodbStoreUrl(
  service: ServiceName,
  hosts: string,
  options: string,
  secrets: DeploymentSecrets,
): string {
  const password = encodeURIComponent(secrets.mongodbPassword(service));
  return `mongodb://${service}:${password}@${hosts}/${service}?${options}`;
}
