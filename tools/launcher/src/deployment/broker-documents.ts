import { brokerClients } from "@devmesh/contracts/mesh";
import {
  type BrokerConfigOptions,
  brokerConfig,
  EnvironmentVariable,
  type TlsFiles,
} from "@devmesh/device-broker/broker-config";
import { brokerPasswordVariables, issuerVariable } from "./deployment-secrets.ts";

/** Servers of the cluster in Kubernetes, each with a route to it in `CLUSTER_ROUTE_<n>`. */
const CLUSTER_SIZE = 3;

const tls: TlsFiles = { certFile: "/etc/nats/tls/tls.crt", keyFile: "/etc/nats/tls/tls.key" };
/** Without TLS, which the proxy in front ends. */
const plainPorts = { nats: 4222, mqtt: 1883, websocket: 8083, monitor: 8222 };
const tlsPorts = { nats: 4222, mqtt: 8883, websocket: 8443, monitor: 8222 };

type Variant = Pick<BrokerConfigOptions, "ports" | "tls" | "serverName" | "cluster" | "mqttReplicas">;

const variants: Readonly<Record<string, Variant>> = {
  "compose/nats-server.conf": { ports: plainPorts },
  "k8s/components/nats/nats-server.conf": {
    ports: tlsPorts,
    tls,
    serverName: new EnvironmentVariable("SERVER_NAME"),
    mqttReplicas: CLUSTER_SIZE,
    cluster: {
      name: "devmesh",
      port: 6222,
      routes: Array.from({ length: CLUSTER_SIZE }, (_, at) => new EnvironmentVariable(`CLUSTER_ROUTE_${at}`)),
      user: "route",
      password: new EnvironmentVariable("CLUSTER_PASSWORD"),
    },
  },
  "k8s/components/nats-single/nats-server.conf": { ports: tlsPorts, tls },
};

/** The configurations of nats-server for compose and Kubernetes, by path below the root; every secret is a variable. */
export function brokerDocuments(): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(variants).map(([path, variant]) => [path, documentOf(variant)]));
}

function documentOf(variant: Variant): string {
  const users = [...brokerPasswordVariables].map(
    ([variable, user]) => [user, new EnvironmentVariable(variable)] as const,
  );
  const config = brokerConfig(brokerClients, {
    ...variant,
    host: "0.0.0.0",
    storeDir: "/data/jetstream",
    logFile: "/var/log/nats/nats-server.log",
    users: Object.fromEntries(users),
    issuerPublicKey: new EnvironmentVariable(issuerVariable),
  });
  return `# Made by \`npm run generate\`. What begins with $ comes from nats-server's environment, each in double quotes.\n${config}`;
}
