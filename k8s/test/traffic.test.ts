import { describe, expect, test } from "@jest/globals";
import { findGoProgram, kustomize } from "../src/go-program.ts";
import { buildManifests, overlays, workloadsOf } from "../src/manifest.ts";
import { allowedTraffic } from "../src/traffic.ts";

const builder = await findGoProgram("kustomize", kustomize);
const withBuilder = builder === null ? describe.skip : describe;

const services = ["data", "devices", "gateway", "keys", "mailer", "rpc-bridge"];
const storeOwners = ["data", "devices", "keys"];

/** What every overlay lets through. */
const everywhere = [
  "ingress-nginx -> gateway:8080",
  ...services.map((service) => `monitoring -> ${service}:9090`),
  // The API server has no pod: it can only be named by its ports.
  "bootstrap -> anywhere:443",
  "bootstrap -> anywhere:6443",
  ...[25, 465, 587].map((port) => `mailer -> anywhere:${port}`),
];

/** What nats-servers of the overlay let through. */
const toNats = [
  "anywhere -> nats:8443",
  "anywhere -> nats:8883",
  ...services.map((service) => `${service} -> nats:4222`),
  "rpc-bridge -> nats:8883",
  "nats -> nats:6222",
];

const expected: Readonly<Record<(typeof overlays)[number], readonly string[]>> = {
  single: [...everywhere, ...toNats],
  production: [
    ...everywhere,
    ...toNats,
    ...[...storeOwners, "mongodb", "mongodb-initiation"].map((client) => `${client} -> mongodb:27017`),
  ],
  external: [
    ...everywhere,
    ...services.map((service) => `${service} -> anywhere:4222`),
    "rpc-bridge -> anywhere:8883",
    ...storeOwners.map((service) => `${service} -> anywhere:27017`),
  ],
};

withBuilder("the network policies of", () => {
  test.each(overlays)("%s let through what is needed, and nothing else", async (overlay) => {
    const objects = await buildManifests(builder ?? "", `overlays/${overlay}`);
    const names = workloadsOf(objects).map(({ name }) => `${name} -> kube-system:53`);
    expect(allowedTraffic(objects)).toEqual([...expected[overlay], ...names].sort());
  });
});
