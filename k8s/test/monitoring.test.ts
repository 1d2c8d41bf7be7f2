import { execFile } from "node:child_process";
import { X509Certificate } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { serviceNames } from "@devmesh/contracts/mesh";
import { repository } from "@devmesh/supervisor/mesh/service-process";
import { startMesh } from "@devmesh/testkit/mesh";
import { tempFolder } from "@devmesh/testkit/temp-folder";
import { testCertificate } from "@devmesh/testkit/test-certificate";
import { beforeAll, describe, expect, test } from "@jest/globals";
import { parse } from "yaml";
import { z } from "zod";
import { findGoProgram, kustomize } from "../src/go-program.ts";
import { type KubernetesObject, ofKind, workloadsOf } from "../src/manifest.ts";
import { findKubernetesSchemas, findKubeScore } from "../src/manifest-checks.ts";
import {
  type Dashboard,
  monitoringFolder,
  namesIn,
  readDashboards,
  readRules,
  withoutVariables,
} from "../src/monitoring.ts";
import { findPromtool } from "../src/promtool.ts";
import { buildWithComponents } from "./build-with-components.ts";

const checker = await findPromtool();
const builder = await findGoProgram("kustomize", kustomize);
const kubeScore = await findKubeScore();
const schemas = await findKubernetesSchemas();
const withChecker = checker === null ? describe.skip : describe;
const withBuilder = builder === null ? describe.skip : describe;

const services = serviceNames.toSorted();

const rules = await readRules();
const dashboards = await readDashboards();
const alerts = rules.flatMap(({ alert }) => alert ?? []);

/** Every query of rules, panels and variables. */
const queries = [
  ...rules.map(({ expr }) => expr),
  ...dashboards.flatMap(({ panels, templating }) => [
    ...panels.flatMap(({ targets }) => targets.map(({ expr }) => expr)),
    ...templating.list.flatMap(({ query }) => (typeof query === "string" ? [] : query.query)),
  ]),
].map(withoutVariables);

/** Runs promtool; resolves with what it printed, also when it found something. */
async function runPromtool(...args: readonly string[]): Promise<string> {
  const options = { cwd: monitoringFolder, maxBuffer: 16 * 1024 * 1024 };
  const { stdout, stderr } = await promisify(execFile)(checker ?? "", args, options).catch((error) =>
    z.object({ stdout: z.string(), stderr: z.string() }).parse(error),
  );
  return stdout + stderr;
}

const Series = z.object({ series: z.string(), values: z.string() });
const Cases = z.looseObject({
  tests: z.array(
    z.looseObject({
      name: z.string(),
      input_series: z.array(Series),
      promql_expr_test: z.array(
        z.looseObject({ exp_samples: z.array(z.looseObject({ labels: z.string() })) }),
      ),
    }),
  ),
});
const cases = Cases.parse(parse(readFileSync(join(monitoringFolder, "rules.test.yaml"), "utf8")));

/** The series of a case that has any, with those of a ready replica of each service that it does not have itself. */
function withReplicas(given: readonly z.infer<typeof Series>[]) {
  if (given.length === 0) return given;
  const ready = services.map((service) => {
    const labels = `job="${service}",instance="${service}-0",service="${service}",check="started"`;
    return { series: `devmesh_readiness{namespace="devmesh",${labels}}`, values: "1x420" };
  });
  return [...ready.filter(({ series }) => given.every((one) => one.series !== series)), ...given];
}

withChecker("promtool", () => {
  test("accepts the rules and the configuration", async () => {
    expect(await runPromtool("check", "rules", "rules.yaml")).toContain(
      `SUCCESS: ${rules.length} rules found`,
    );
    expect(await runPromtool("check", "config", "prometheus.yaml")).not.toContain("FAILED");
  });

  test("raises each alert in its case, and none in a healthy mesh", async () => {
    await using folder = await tempFolder();
    const file = join(folder.path, "rules.test.yaml");
    const tests = cases.tests.map((one) => ({ ...one, input_series: withReplicas(one.input_series) }));
    const rule_files = [join(monitoringFolder, "rules.yaml")];
    await writeFile(file, JSON.stringify({ ...cases, rule_files, tests }));
    expect(await runPromtool("test", "rules", file)).toContain("SUCCESS");
  }, 300_000);

  test("parses every query of the dashboards", async () => {
    await using folder = await tempFolder();
    const file = join(folder.path, "panels.yaml");
    const panels = dashboards.flatMap(({ panels }) => panels.flatMap(({ targets }) => targets));
    const recorded = panels.map(({ expr }, at) => ({ record: `panel:${at}`, expr: withoutVariables(expr) }));
    await writeFile(file, JSON.stringify({ groups: [{ name: "panels", rules: recorded }] }));
    expect(await runPromtool("check", "rules", file)).toContain(`SUCCESS: ${panels.length} rules found`);
  });
});

describe("each alert", () => {
  test("has a case in which it fires", () => {
    const fired = cases.tests.flatMap(({ promql_expr_test }) =>
      promql_expr_test.flatMap(({ exp_samples }) => exp_samples.map(({ labels }) => labels)),
    );
    expect(alerts.filter((alert) => !fired.includes(`{alertname="${alert}"}`))).toEqual([]);
  });

  test("could fire in the healthy case, which has every metric", () => {
    const [healthy] = cases.tests;
    const given = new Set(healthy?.input_series.map(({ series }) => series.replace(/\{.*/, "")));
    const read = rules.flatMap(({ expr }) => [...namesIn(expr).metrics]);
    expect(read.filter((metric) => !metric.startsWith("devmesh:") && !given.has(metric))).toEqual([]);
  });

  test("has a section of its own in alerts.md, to which it leads", () => {
    const page = readFileSync(join(repository, "docs/operations/alerts.md"), "utf8");
    const sections = [...page.matchAll(/^### (Devmesh\w+)$/gm)].map(([, name]) => name);
    expect(sections).toEqual(alerts);
    for (const { alert, annotations } of rules)
      if (alert !== undefined)
        expect(annotations?.runbook_url).toBe(`docs/operations/alerts.md#${alert.toLowerCase()}`);
  });
});

test("a mesh of which one service is scraped must have them all", () => {
  const Expected = z.object({
    record: z.literal("devmesh:service_expected"),
    labels: z.object({ service: z.string() }),
  });
  const file = parse(readFileSync(join(monitoringFolder, "rules.yaml"), "utf8"));
  const expected = file.groups[0].rules.flatMap(
    (rule: unknown) => Expected.safeParse(rule).data?.labels.service ?? [],
  );
  expect(expected.sort()).toEqual(services);
});

test("Prometheus beside compose scrapes all services", async () => {
  const config = await readFile(join(monitoringFolder, "prometheus.yaml"), "utf8");
  const targets = [...config.matchAll(/- ([a-z-]+):9090$/gm)].map(([, name]) => name);
  expect(targets.sort()).toEqual(services);
});

describe.each(dashboards.map((dashboard) => [dashboard.file, dashboard] as const))(
  "%s",
  (file, dashboard) => {
    test("has panels of its own, with a data source to choose", () => {
      expect(file).toBe(`${dashboard.uid}.json`);
      const ids = dashboard.panels.map(({ id }) => id);
      expect(new Set(ids).size).toBe(ids.length);
      const titles = dashboards.map(({ title }: Dashboard) => title);
      expect(new Set(titles).size).toBe(titles.length);
      const source = { type: "prometheus", uid: `$\{datasource}` };
      for (const { type, title, datasource, targets } of dashboard.panels.filter(
        ({ type }) => type !== "row",
      )) {
        expect({ type, title, datasource, queries: targets.length > 0 }).toEqual({
          type,
          title,
          datasource: source,
          queries: true,
        });
        for (const target of targets) expect(target.datasource).toEqual(source);
      }
      expect(dashboard.templating.list).toContainEqual(
        expect.objectContaining({ name: "datasource", type: "datasource", query: "prometheus" }),
      );
    });

    test("uses each of its variables, and no others", () => {
      const declared = dashboard.templating.list.map(({ name }) => name);
      const used = JSON.stringify([dashboard.panels, dashboard.templating]).matchAll(/\$\{?([a-z]\w*)/g);
      expect([...new Set([...used].map(([, name]) => name))].sort()).toEqual(declared.sort());
    });
  },
);

describe("the figures", () => {
  /** The metrics of all services of a mesh. */
  let scraped: string;
  /** All code and the lists of metrics of the services. */
  let code: string;

  beforeAll(async () => {
    await using folder = await tempFolder();
    const [cert, key] = [join(folder.path, "cert.pem"), join(folder.path, "key.pem")];
    await writeFile(cert, testCertificate.cert);
    await writeFile(key, testCertificate.key);
    const mesh = await startMesh({ env: { MQTT_TLS_CERT: cert, MQTT_TLS_KEY: key } });
    try {
      await mesh.http("/api/v2/devices", { body: { id: "pump-1" } });
      const { services } = await mesh.parts();
      const texts = Object.values(services).map(
        async ({ ops }) => await (await fetch(`${ops}/metrics`)).text(),
      );
      scraped = (await Promise.all(texts)).join("\n");
    } finally {
      await mesh.stop();
    }
    code = ["libs", "services"]
      .flatMap((folder) =>
        readdirSync(join(repository, folder)).map((name) => join(repository, folder, name)),
      )
      .flatMap((place) => [
        ...readdirSync(join(place, "src"), { recursive: true, encoding: "utf8" })
          .filter((name) => name.endsWith(".ts"))
          .map((name) => readFileSync(join(place, "src", name), "utf8")),
        ...(place.includes("services") ? [readFileSync(join(place, "README.md"), "utf8")] : []),
      ])
      .join("\n");
  }, 180_000);

  /** The name that a metric has in its `# TYPE` line. */
  const familyOf = (metric: string) =>
    new RegExp(`^# TYPE ${metric} `, "m").test(scraped) ? metric : metric.replace(/_(bucket|sum|count)$/, "");

  /** Labels of the samples of a metric, and those that its declaration names. */
  function labelsOf(metric: string): ReadonlySet<string> {
    const family = familyOf(metric);
    const samples = [...scraped.matchAll(new RegExp(`^${family}(?:_bucket)?\\{([^}]*)\\}`, "gm"))].join();
    const declaration = new RegExp(`"${family}",([^)]*)`).exec(code)?.[1] ?? "";
    const labels = [...samples.matchAll(/(\w+)="/g), ...declaration.matchAll(/"(\w+)"/g)];
    return new Set(labels.map(([, label = ""]) => label));
  }

  /** Labels that Prometheus gives each target. */
  const ofTargets = ["namespace", "job", "instance", "pod"];

  test("that rules and dashboards read are all in the metrics of a mesh", () => {
    const recorded = rules.flatMap(({ record }) => record ?? []);
    const named = new Set(queries.flatMap((query) => [...namesIn(query).metrics]));
    expect(named.size).toBeGreaterThan(40);
    const known = (metric: string) =>
      recorded.includes(metric) || new RegExp(`^# TYPE ${familyOf(metric)} `, "m").test(scraped);
    expect([...named].filter((metric) => !known(metric))).toEqual([]);
  });

  test("that autoscalers read have a value from the start", async () => {
    const adapter = await readFile(join(monitoringFolder, "prometheus-adapter.yaml"), "utf8");
    const read = [...adapter.matchAll(/seriesQuery: (\w+)/g)].map(([, name]) => name);
    expect(read.length).toBeGreaterThan(2);
    const hasValue = (name: string | undefined) => new RegExp(`^${name}(\\{.*\\})? \\d`, "m").test(scraped);
    expect(read.filter((name) => !hasValue(name))).toEqual([]);
  });

  test("say when the certificate of MQTT expires", () => {
    const expiry = /^devmesh_mqtt_certificate_expiry_timestamp_seconds (\S+)$/m.exec(scraped)?.[1];
    expect(Number(expiry) * 1_000).toBe(new X509Certificate(testCertificate.cert).validToDate.getTime());
  });

  test("of Devmesh are each shown in a dashboard", () => {
    const shown = dashboards.flatMap(({ panels }) =>
      panels.flatMap(({ targets }) => targets.map(({ expr }) => expr)),
    );
    const families = new Set(shown.flatMap((expr) => [...namesIn(expr).metrics].map(familyOf)));
    const measured = [...scraped.matchAll(/^# TYPE (devmesh_\w+) /gm)].map(([, name = ""]) => name);
    expect(measured.filter((name) => !families.has(name))).toEqual([]);
  });

  test("have the labels and values that queries select by", () => {
    const unknown = queries.flatMap((query) =>
      namesIn(query).selected.flatMap(({ metric, label, values }) => {
        if (ofTargets.includes(label)) return [];
        if (!labelsOf(metric).has(label)) return [`${metric}{${label}}`];
        return values
          .filter((value) => !code.includes(value))
          .map((value) => `${metric}{${label}="${value}"}`);
      }),
    );
    expect(unknown).toEqual([]);
  });

  test("have the labels that queries group by", () => {
    const unknown = queries.flatMap((query) => {
      const { metrics, grouped } = namesIn(query);
      const labels = new Set([...metrics].flatMap((metric) => [...labelsOf(metric)]));
      const recorded = [...metrics].some((metric) => metric.startsWith("devmesh:"));
      return grouped.filter(
        (label) => !ofTargets.includes(label) && !labels.has(label) && !(recorded && label === "service"),
      );
    });
    expect(unknown).toEqual([]);
  });
});

withBuilder("the components over production", () => {
  let objects: readonly KubernetesObject[];

  beforeAll(async () => {
    const components = ["monitoring", "k8s/components/load-autoscaling"];
    objects = await buildWithComponents(builder ?? "", "production", components);
  });

  const ofKubernetes = () =>
    objects.filter(({ apiVersion }) => !apiVersion.startsWith("monitoring.coreos.com/"));

  test("fit the schemas of Kubernetes and have no finding of kube-score", async () => {
    expect(await schemas?.("1.37")(ofKubernetes())).toEqual(schemas === null ? undefined : []);
    expect(await kubeScore?.(ofKubernetes())).toEqual(kubeScore === null ? undefined : []);
  });

  test("scrape the pods of all services, on the port of their figures", () => {
    const Monitor = z.object({
      jobLabel: z.string(),
      selector: z.object({ matchLabels: z.record(z.string(), z.string()) }),
      podMetricsEndpoints: z.tuple([z.object({ port: z.string(), path: z.string() })]),
    });
    const [monitor] = ofKind(objects, "PodMonitor").map(({ spec }) => Monitor.parse(spec));
    const [endpoint] = monitor?.podMetricsEndpoints ?? [];
    expect(endpoint?.path).toBe("/metrics");
    const selected = workloadsOf(objects).filter(({ template }) =>
      Object.entries(monitor?.selector.matchLabels ?? {}).every(
        ([label, value]) => template.metadata.labels[label] === value,
      ),
    );
    expect(selected.map(({ name }) => name).sort()).toEqual(services);
    for (const { name, template } of selected) {
      expect(template.metadata.labels[monitor?.jobLabel ?? ""]).toBe(name);
      expect(template.spec.containers[0]?.ports.map((port) => port.name)).toContain(endpoint?.port);
    }
  });

  test("have the rules and the dashboards of the files", async () => {
    const [rule] = ofKind(objects, "PrometheusRule");
    expect(rule?.spec).toEqual(parse(await readFile(join(monitoringFolder, "rules.yaml"), "utf8")));
    const shown = ofKind(objects, "ConfigMap").find(
      ({ metadata }) => metadata.labels?.grafana_dashboard === "1",
    );
    const files = z.record(z.string(), z.string()).parse(shown?.data);
    expect(Object.keys(files).sort()).toEqual(dashboards.map(({ file }) => file));
  });

  test("scale by figures that the adapter makes", async () => {
    const Adapter = z.object({
      rules: z.object({
        custom: z.array(z.object({ seriesQuery: z.string(), name: z.object({ as: z.string() }).optional() })),
      }),
    });
    const values = parse(await readFile(join(monitoringFolder, "prometheus-adapter.yaml"), "utf8"));
    const made = Adapter.parse(values).rules.custom.map(
      ({ seriesQuery, name }) => name?.as ?? seriesQuery.replace(/\{.*/, ""),
    );
    const Scaler = z.object({
      metrics: z.array(z.object({ pods: z.object({ metric: z.object({ name: z.string() }) }).optional() })),
    });
    const scalers = ofKind(objects, "HorizontalPodAutoscaler");
    const wanted = scalers.flatMap(({ metadata, spec }) =>
      Scaler.parse(spec).metrics.flatMap(({ pods }) => (pods ? `${metadata.name} ${pods.metric.name}` : [])),
    );
    expect(wanted.sort()).toEqual(
      [
        ...serviceNames.map((name) => `${name} devmesh_event_loop_utilization`),
        "gateway devmesh_notify_listeners",
        "rpc-bridge devmesh_rpc_calls_in_flight",
      ].sort(),
    );
    expect([...new Set(wanted.map((line) => line.split(" ")[1]))].sort()).toEqual(made.sort());
  });
});
