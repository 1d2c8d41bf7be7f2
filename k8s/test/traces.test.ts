import { serviceNames } from "@devmesh/contracts/mesh";
import { readEnv, ServiceEnv } from "@devmesh/service-kit/process/env";
import { describe, expect, test } from "@jest/globals";
import { z } from "zod";
import { findGoProgram, kustomize } from "../src/go-program.ts";
import { ofKind, overlays, workloadsOf } from "../src/manifest.ts";
import { findKubernetesSchemas } from "../src/manifest-checks.ts";
import { buildWithComponents } from "./build-with-components.ts";

const builder = await findGoProgram("kustomize", kustomize);
const schemas = await findKubernetesSchemas();
const withBuilder = builder === null ? describe.skip : describe;

const Policy = z.object({
  podSelector: z.object({ matchLabels: z.record(z.string(), z.string()) }),
  egress: z.tuple([
    z.object({
      to: z.tuple([
        z.object({ namespaceSelector: z.object({ matchLabels: z.record(z.string(), z.string()) }) }),
      ]),
      ports: z.tuple([z.object({ port: z.int() })]),
    }),
  ]),
});

const dataOf = (data: unknown) => z.record(z.string(), z.string()).default({}).parse(data);

withBuilder("the component for traces", () => {
  test.each(overlays)("names every service of %s a collector, and lets it connect there", async (name) => {
    const objects = await buildWithComponents(builder ?? "", name, ["k8s/components/traces"]);
    expect(await schemas?.("1.37")(objects)).toEqual(schemas === null ? undefined : []);

    const settings = ofKind(objects, "ConfigMap").filter(({ data }) =>
      Object.hasOwn(dataOf(data), "OTEL_EXPORTER_OTLP_ENDPOINT"),
    );
    const [map] = settings;
    expect(settings.length).toBe(1);
    const reading = readEnv(ServiceEnv, dataOf(map?.data));
    if (!("env" in reading)) throw new Error(reading.problems.join("\n"));
    const collector = new URL(reading.env.OTEL_EXPORTER_OTLP_ENDPOINT ?? "");

    const policy = ofKind(objects, "NetworkPolicy").find(
      ({ metadata }) => metadata.name === "services-to-collector",
    );
    const { podSelector, egress } = Policy.parse(policy?.spec);
    expect(egress[0].ports[0].port).toBe(Number(collector.port));
    expect(egress[0].to[0].namespaceSelector.matchLabels).toEqual({
      "kubernetes.io/metadata.name": collector.hostname.split(".")[1],
    });
    const services = workloadsOf(objects).filter(({ template }) =>
      Object.entries(podSelector.matchLabels).every(
        ([label, value]) => template.metadata.labels[label] === value,
      ),
    );
    expect(services.map((service) => service.name).sort()).toEqual(serviceNames.toSorted());
    for (const { template } of services) {
      const maps = template.spec.containers.flatMap(({ envFrom }) =>
        envFrom.map(({ configMapRef }) => configMapRef?.name),
      );
      expect(maps).toContain(map?.metadata.name);
      const secrets = template.spec.containers.flatMap(({ envFrom }) =>
        envFrom.map(({ secretRef }) => secretRef?.name),
      );
      expect(secrets).toContain("traces");
    }
  });
});
