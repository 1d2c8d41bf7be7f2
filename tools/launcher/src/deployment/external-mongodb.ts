import { storeOwners } from "@devmesh/contracts/mesh";
import { type KubernetesSecret, secret } from "./kubernetes-secrets.ts";

const DEFAULT_PORT = 27_017;

/** The policy that lets services reach a MongoDB outside of the cluster. */
interface MongodbPolicy {
  readonly apiVersion: "networking.k8s.io/v1";
  readonly kind: "NetworkPolicy";
  readonly metadata: KubernetesSecret["metadata"];
  readonly spec: object;
}

/**
 * The Secrets with `STORE_URL` for a MongoDB elsewhere, a database for each service, and the NetworkPolicy for the
 * ports in its URL, which has no database; null for another URL. A `mongodb+srv:` URL has port 27017.
 */
export function externalMongodb(url: string): readonly (KubernetesSecret | MongodbPolicy)[] | null {
  const form = /^(?<server>mongodb(?:\+srv)?:\/\/(?:[^@/?]+@)?(?<hosts>[^@/?]+))\/?(?<options>\?.*)?$/;
  const { server, hosts, options = "" } = form.exec(url)?.groups ?? {};
  if (server === undefined || hosts === undefined) return null;
  const ports = hosts
    .split(",")
    .map((host) => Number(/:(?<port>\d+)$/.exec(host)?.groups?.port ?? DEFAULT_PORT));
  const { metadata } = secret("stores-to-external-mongodb", {});
  return [
    ...storeOwners.map((service) =>
      secret(`${service}-store`, { STORE_URL: `${server}/${service}${options}` }),
    ),
    {
      apiVersion: "networking.k8s.io/v1",
      kind: "NetworkPolicy",
      metadata,
      spec: {
        podSelector: {
          matchExpressions: [{ key: "app.kubernetes.io/name", operator: "In", values: storeOwners }],
        },
        policyTypes: ["Egress"],
        egress: [{ ports: [...new Set(ports)].map((port) => ({ port })) }],
      },
    },
  ];
}
