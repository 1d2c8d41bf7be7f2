import { mesh } from "@devmesh/contracts/mesh";
import { brokerUsers } from "@devmesh/service-kit/broker-config";

/** Users of the broker by the environment variable that hands nats-server their password, such as `NATS_PASSWORD_RPC_BRIDGE_DEVICES`. */
export const brokerPasswordVariables: ReadonlyMap<string, string> = new Map(
  brokerUsers(mesh).map(({ user }) => [passwordVariable(user), user]),
);

/** The variable with the password of one user of the broker. */
export function passwordVariable(user: string): string {
  return `NATS_PASSWORD_${user.toUpperCase().replaceAll(/[^A-Z]/g, "_")}`;
}

/** The variable with the public half of the seed that the keys service signs MQTT logins with. */
export const issuerVariable = "AUTH_ISSUER";
