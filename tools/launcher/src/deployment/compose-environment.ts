import { brokerPasswordVariables, issuerVariable } from "./broker-variables.ts";
import { type DeploymentSecrets, mongodbUsers } from "./deployment-secrets.ts";

/** The file `.env` that compose.yaml takes its secrets from. */
export function composeEnvironment(secrets: DeploymentSecrets): string {
  const variables: [string, string | undefined][] = [
    ...[...brokerPasswordVariables].map(([variable, user]): [string, string | undefined] => [
      variable,
      secrets.brokerPassword(user),
    ]),
    [issuerVariable, secrets.issuer.public_key],
    ["AUTH_ISSUER_SEED", secrets.issuer.seed],
    ["KEY_ENCRYPTION_KEY", secrets.keyEncryptionKey],
    ["MASTER_KEY", secrets.masterKey],
    ...mongodbUsers.map((user): [string, string] => [
      `MONGODB_PASSWORD_${user.toUpperCase()}`,
      secrets.mongodbPassword(user),
    ]),
  ];
  // None of these holds a quote, a dollar or a line feed: they are base64, base32 and letters.
  return variables.map(([name, value]) => `${name}=${value ?? ""}\n`).join("");
}
