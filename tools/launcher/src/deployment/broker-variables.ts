import { mesh } from "@devmesh/contracts/mesh";
import { brokerUsers } from "@devmesh/device-broker/broker-config";

/**
 * Names of the broker's users by the environment variable that hands nats-server their password, such as
 * `NATS_PASSWORD_RPC_BRIDGE_DEVICES`.
 */
export const brokerPasswordVariables: ReadonlyMap<string, string> = new Map(
  brokerUsers(mesh).map(({ name }) => [passwordVariable(name), name]),
);

/** The variable with the password of one user of the broker. */
function passwordVariable(name: string): string {
  return `NATS_PASSWORD_${name.toUpperCase().replaceAll(/[^A-Z]/g, "_")}`;
}

/** The variable with the public half of the seed that the keys service signs MQTT logins with. */
export const issuerVariable = "AUTH_ISSUER";
