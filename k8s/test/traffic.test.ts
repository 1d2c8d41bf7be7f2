import { mesh, serviceNames, storeOwners } from "@devmesh/contracts/mesh";
import type { ServiceDeclaration } from "@devmesh/contracts/topology";
import { externalMongodb } from "@devmesh/launcher/deployment/external-mongodb";
import { describe, expect, test } from "@jest/globals";
import { findGoProgram, kustomize } from "../src/go-program.ts";
import { buildManifests, KubernetesObject, overlays, workloadsOf } from "../src/manifest.ts";
import { allowedTraffic } from "../src/traffic.ts";

const builder = await findGoProgram("kustomize", kustomize);
const withBuilder = builder === null ? describe.skip : describe;

/** What every overlay lets through. */
const everywhere = [
  "ingress-nginx -> gateway:8080",
  ...serviceNames.map((service) => `monitoring -> ${service}:9090`),
  // The API server has no pod: it can only be named by its ports.
  "bootstrap -> anywhere:443",
  "bootstrap -> anywhere:6443",
  ...serviceNames.flatMap((service) => {
    const { reaches }: ServiceDeclaration = mesh[service];
    if (reaches === "public") return [`${service} -> public:0`];
    return reaches.map((port) => `${service} -> anywhere:${port}`);
  }),
];

/** What nats-servers of the overlay let through. */
const toNats = [
  ...serviceNames.map((service) => `${service} -> nats:4222`),
  "rpc-bridge -> nats:8883",
  "nats -> nats:6222",
];

/** What devices use, where nothing is in front of the nats-servers, and with HAProxy in front. */
const devicesToNats = ["anywhere -> nats:8443", "anywhere -> nats:8883"];
const devicesToProxy = [
  "anywhere -> mqtt-proxy:8443",
  "anywhere -> mqtt-proxy:8883",
  "mqtt-proxy -> nats:8443",
  "mqtt-proxy -> nats:8883",
  "monitoring -> mqtt-proxy:9090",
];

const expected: Readonly<Record<(typeof overlays)[number], readonly string[]>> = {
  single: [...everywhere, ...toNats, ...devicesToNats],
  production: [
    ...everywhere,
    ...toNats,
    ...devicesToProxy,
    ...[...storeOwners, "mongodb", "mongodb-initiation"].map((client) => `${client} -> mongodb:27017`),
  ],
  "external-mongodb": [...everywhere, ...toNats, ...devicesToProxy],
  external: [
    ...everywhere,
    ...serviceNames.map((service) => `${service} -> anywhere:4222`),
    "rpc-bridge -> anywhere:8883",
  ],
};

withBuilder("the network policies of", () => {
  test.each(overlays)("%s let through what is needed, and nothing else", async (overlay) => {
    const objects = await buildManifests(builder ?? "", `overlays/${overlay}`);
    const names = workloadsOf(objects).map(({ name }) => `${name} -> kube-system:53`);
    expect(allowedTraffic(objects)).toEqual([...expected[overlay], ...names].sort());
  });

  test.each(["external-mongodb", "external"])(
    "%s let through the ports of MongoDB with what npm run secrets prints for its URL",
    async (overlay) => {
      const objects = await buildManifests(builder ?? "", `overlays/${overlay}`);
      const printed = externalMongodb("mongodb://a.example.com:27018,b.example.com") ?? [];
      const without = new Set(allowedTraffic(objects));
      const all = allowedTraffic([...objects, ...printed.map((object) => KubernetesObject.parse(object))]);
      expect(all.filter((line) => !without.has(line))).toEqual(
        storeOwners
          .toSorted()
          .flatMap((service) => [27017, 27018].map((port) => `${service} -> anywhere:${port}`)),
      );
    },
  );
});
