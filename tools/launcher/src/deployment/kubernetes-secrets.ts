import { type ServiceName, serviceNames, storeOwners } from "@devmesh/contracts/mesh";
import {
  brokerCredentials,
  brokerPasswordVariables,
  type DeploymentSecrets,
  issuerVariable,
  mongodbStoreUrl,
  mongodbUsers,
} from "./deployment-secrets.ts";

/** The replica set of `k8s/components/mongodb`. */
const mongodbHosts = ["mongodb-0.mongodb", "mongodb-1.mongodb", "mongodb-2.mongodb"].join(",");
const mongodbOptions = "replicaSet=rs0&authSource=admin&w=majority";

/** What the Secrets are made from. */
export interface KubernetesSecretsOptions {
  readonly secrets: DeploymentSecrets;
  /** The server that takes mail, with its password. */
  readonly smtpUrl: string;
  /** Whether MongoDB runs beside the services (`k8s/components/mongodb`). */
  readonly withMongodb: boolean;
}

/** A Secret of Kubernetes. */
export interface KubernetesSecret {
  readonly apiVersion: "v1";
  readonly kind: "Secret";
  readonly metadata: { readonly name: string; readonly labels: Readonly<Record<string, string>> };
  readonly stringData: Readonly<Record<string, string>>;
}

/**
 * The Secrets that the manifests name: `nats`, `broker-log`, one for each service, and with MongoDB `mongodb` and
 * `<service>-store`. Each holds what its workload needs, and no more.
 */
export function kubernetesSecrets(options: KubernetesSecretsOptions): readonly KubernetesSecret[] {
  const { secrets, withMongodb } = options;
  return [
    secret("nats", { ...natsEnvironment(secrets), ROUTE_PASSWORD: secrets.routePassword }),
    secret("broker-log", brokerCredentials("broker-log", secrets)),
    ...serviceNames.map((service) => secret(service, serviceSecrets(service, options))),
    ...(withMongodb ? mongodbSecrets(secrets) : []),
  ];
}

/** In double quotes, since nats-server parses a variable as a value of its configuration language. */
function natsEnvironment(secrets: DeploymentSecrets): Record<string, string> {
  const passwords = [...brokerPasswordVariables].map(([variable, user]) => [
    variable,
    JSON.stringify(secrets.brokerPassword(user)),
  ]);
  return { ...Object.fromEntries(passwords), [issuerVariable]: JSON.stringify(secrets.issuer.public_key) };
}

function serviceSecrets(
  service: ServiceName,
  { secrets, smtpUrl }: KubernetesSecretsOptions,
): Record<string, string> {
  const credentials = brokerCredentials(service, secrets);
  if (service === "mailer") return { ...credentials, SMTP_URL: smtpUrl };
  if (service === "webhooks") return { ...credentials, WEBHOOK_KEY: secrets.webhookKey };
  if (service !== "keys") return credentials;
  return {
    ...credentials,
    KEY_ENCRYPTION_KEY: secrets.keyEncryptionKey,
    AUTH_ISSUER_SEED: secrets.issuer.seed,
  };
}

function mongodbSecrets(secrets: DeploymentSecrets): KubernetesSecret[] {
  const passwords = mongodbUsers.map((user) => [`${user}-password`, secrets.mongodbPassword(user)]);
  return [
    secret("mongodb", { ...Object.fromEntries(passwords), "member-key": secrets.mongodbMemberKey }),
    ...storeOwners.map((service) =>
      secret(`${service}-store`, {
        STORE_URL: mongodbStoreUrl(service, mongodbHosts, mongodbOptions, secrets),
      }),
    ),
  ];
}

/** A Secret of the mesh. */
export function secret(name: string, stringData: Readonly<Record<string, string>>): KubernetesSecret {
  return {
    apiVersion: "v1",
    kind: "Secret",
    metadata: { name, labels: { "app.kubernetes.io/part-of": "devmesh" } },
    stringData,
  };
}
