import { z } from "zod";
import { type KubernetesObject, ofKind, workloadsOf } from "./manifest.ts";

type Labels = Readonly<Record<string, string>>;

const Selector = z.strictObject({
  matchLabels: z.record(z.string(), z.string()).default({}),
  matchExpressions: z
    .array(z.strictObject({ key: z.string(), operator: z.literal("In"), values: z.array(z.string()) }))
    .default([]),
});
type Selector = z.infer<typeof Selector>;

const Peer = z.strictObject({
  podSelector: Selector.optional(),
  namespaceSelector: Selector.optional(),
  ipBlock: z.strictObject({ cidr: z.string(), except: z.array(z.string()).optional() }).optional(),
});
type Peer = z.infer<typeof Peer>;

const Ports = z.array(z.strictObject({ port: z.int(), protocol: z.string().optional() })).min(1);
const Ingress = z.strictObject({ from: z.array(Peer).optional(), ports: Ports });
/** Port 0 is any. */
const Egress = z.strictObject({ to: z.array(Peer).optional(), ports: Ports.default([{ port: 0 }]) });

const Policy = z.strictObject({
  podSelector: Selector,
  policyTypes: z.array(z.string()),
  ingress: z.array(Ingress).default([]),
  egress: z.array(Egress).default([]),
});

/** A rule of a policy in either direction: pods, peers and ports. Null peers are all. */
interface Rule {
  readonly pods: Selector;
  readonly peers: readonly Peer[] | null;
  readonly ports: readonly number[];
}

/**
 * All traffic that the NetworkPolicies allow, as sorted lines `gateway -> nats:4222`. Between two workloads both sides
 * must allow it; others are named by their namespace, or `anywhere`. Throws for a rule of another form.
 */
export function allowedTraffic(objects: readonly KubernetesObject[]): readonly string[] {
  const policies = ofKind(objects, "NetworkPolicy").map(({ spec }) => Policy.parse(spec));
  const incoming = policies.flatMap(({ podSelector, ingress }) =>
    ingress.map(({ from, ports }) => ruleOf(podSelector, from, ports)),
  );
  const outgoing = policies.flatMap(({ podSelector, egress }) =>
    egress.map(({ to, ports }) => ruleOf(podSelector, to, ports)),
  );
  const pods = workloadsOf(objects).map(({ name, template }) => ({ name, labels: template.metadata.labels }));

  const traffic = pods.flatMap(({ name, labels }) => [
    ...outsidersOf(outgoing, labels).map(([outsider, port]) => `${name} -> ${outsider}:${port}`),
    ...outsidersOf(incoming, labels).map(([outsider, port]) => `${outsider} -> ${name}:${port}`),
    ...pods.flatMap((other) => {
      const taken = new Set(portsBetween(incoming, other.labels, labels));
      const sent = portsBetween(outgoing, labels, other.labels).filter((port) => taken.has(port));
      return sent.map((port) => `${name} -> ${other.name}:${port}`);
    }),
  ]);
  return [...new Set(traffic)].sort();
}

function ruleOf(pods: Selector, peers: readonly Peer[] | undefined, ports: z.infer<typeof Ports>): Rule {
  return { pods, peers: peers ?? null, ports: ports.map(({ port }) => port) };
}

/** Ports on which rules of some pods allow traffic with others of the namespace. */
function portsBetween(rules: readonly Rule[], own: Labels, other: Labels): number[] {
  return rules
    .filter(({ pods }) => matches(pods, own))
    .filter(
      ({ peers }) =>
        peers === null ||
        peers.some(({ podSelector, namespaceSelector }) => {
          return namespaceSelector === undefined && podSelector !== undefined && matches(podSelector, other);
        }),
    )
    .flatMap(({ ports }) => ports);
}

/** Peers outside of the manifests. */
function outsidersOf(rules: readonly Rule[], own: Labels): [string, number][] {
  return rules
    .filter(({ pods }) => matches(pods, own))
    .flatMap(({ peers, ports }) => {
      const names =
        peers === null
          ? ["anywhere"]
          : peers.flatMap(({ namespaceSelector, ipBlock }) => {
              if (ipBlock !== undefined) return [isPublic(ipBlock) ? "public" : ipBlock.cidr];
              return namespaceSelector === undefined ? [] : [nameOf(namespaceSelector)];
            });
      return names.flatMap((name) => ports.map((port): [string, number] => [name, port]));
    });
}

/** Whether a block is all of IPv4 but for exceptions, or the global unicast of IPv6. */
function isPublic({
  cidr,
  except,
}: {
  readonly cidr: string;
  readonly except?: readonly string[] | undefined;
}) {
  return cidr === "2000::/3" || (cidr === "0.0.0.0/0" && except?.includes("10.0.0.0/8") === true);
}

function nameOf({ matchLabels }: Selector): string {
  return matchLabels["kubernetes.io/metadata.name"] ?? "any namespace";
}

function matches({ matchLabels, matchExpressions }: Selector, labels: Labels): boolean {
  return (
    Object.entries(matchLabels).every(([label, value]) => labels[label] === value) &&
    matchExpressions.every(({ key, values }) => values.includes(labels[key] ?? ""))
  );
}
